package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vksplat/farm/page"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
	"vksplat/view"
)

// farmPageOptions is everything that page is asked for.
type farmPageOptions struct {
	viewOptions
	metrics string
	roots   rootsFlags
}

func (o *farmPageOptions) table() []option {
	return append(o.viewOptions.table()[0].options,
		text(&o.metrics, "metrics", "serve numbers for Prometheus at `HOST:PORT` of this machine, path /metrics, without token"))
}

func (a *app) farmPageCommand() *cobra.Command {
	o := &farmPageOptions{}
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Show jobs, tasks, nodes and logs of a farm in the browser",
		Long: "Show jobs, tasks, nodes and logs of a farm in the browser. Nothing can be changed there; a\n" +
			"token of the role view is enough. Where the store's roots are known, tasks that made\n" +
			"pictures show the last one. Ctrl-C ends it.",
		Example: "  vksplat farm page\n  vksplat farm page --token view.token --port 8080 --no-open --metrics 127.0.0.1:9464",
		Args:    cobra.NoArgs,
	}
	return a.farmSub(cmd, &farmFlags{}, false, append(o.table(), o.roots.table()...), func(ctx context.Context, q *farm, _ []string) error {
		return a.farmPage(ctx, q, o)
	})
}

func (a *app) farmPage(ctx context.Context, q *farm, o *farmPageOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	roots, err := rootsOf(q, &o.roots)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if err := serveMetrics(ctx, q, o.metrics, stop); err != nil {
		return err
	}
	server, err := view.Listen(o.server)
	if err != nil {
		return err
	}
	picture := func(ctx context.Context, job, task string) ([]byte, error) {
		return lastPicture(ctx, q, roots, job, task)
	}
	if err := page.Show(server, q, picture); err != nil {
		return errors.Join(err, server.Close())
	}
	a.announce(server, o.noOpen)
	err = server.Serve(ctx)
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, errInterrupted) {
		return cause
	}
	return err
}

// serveMetrics serves numbers to programs of this machine until ctx ends. What ends it earlier is handed to stop.
func serveMetrics(ctx context.Context, q *farm, address string, stop context.CancelCauseFunc) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip, bad := netip.ParseAddr(host); err != nil || host != "localhost" && (bad != nil || !ip.IsLoopback()) {
		return usagef("as in --metrics 127.0.0.1:9464; for other machines let a proxy with a password stand in front", "flag --metrics: %q is no address of this machine alone", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return &scene.Error{Op: "listen", Path: address, Err: err, Hint: "name another port", Kind: scene.ErrTryAgain}
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", page.Metrics(q))
	server := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			stop(err)
		}
	}()
	context.AfterFunc(ctx, func() { _ = server.Close() }) // whoever reads tries again
	return nil
}

// maxShown bounds pictures on pages, in bytes.
const maxShown = 16 << 20

// lastPicture reads the last picture by name of a task's results, nil where there is none.
func lastPicture(ctx context.Context, q *farm, roots store.Roots, name, task string) ([]byte, error) {
	document, err := q.Document(ctx, name)
	if err != nil {
		return nil, err
	}
	job, err := spec.Parse(name, document)
	if err != nil {
		return nil, err
	}
	root, err := roots.Open(job.Store.Outputs)
	if err != nil {
		return nil, err
	}
	out := store.OutOf(path.Join(job.Name, task))
	m, err := store.ReadManifest(root, out)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	var last store.File
	for _, f := range m.Files {
		if f.Size <= maxShown && f.Name > last.Name && slices.Contains([]string{".png", ".jpg"}, strings.ToLower(path.Ext(f.Name))) {
			last = f
		}
	}
	if last.Name == "" {
		return nil, nil
	}
	file, err := root.Open(m.Key(out, last))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, maxShown))
	return data, errors.Join(err, file.Close())
}
