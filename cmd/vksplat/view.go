package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/frames"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
	"vksplat/view"
)

// viewOptions is everything that view is asked for.
type viewOptions struct {
	path        string // a model, or the folder of a run; then its newest model
	title       string
	page        string // write this page and serve nothing
	overwrite   bool   // it may be there already
	noOpen      bool
	stream      bool // this machine draws
	server      view.ServerOptions
	background  [3]float32
	device      pipeline.DeviceOptions // that draws
	given       func(flag string) bool
	deviceFlags []string // those given that choose and limit the device
}

// table lists the options of view. Those of the server come first.
func (o *viewOptions) table() []optionGroup {
	return []optionGroup{{options: []option{
		text(&o.server.Host, "host", "listen at `ADDR` of this machine, for others to see the scene (default: 127.0.0.1, for this machine alone)"),
		integer(&o.server.Port, "port", "listen at port `N` (default: any that is free)"),
		text(&o.server.CertFile, "tls-cert", "encrypt with the certificate in `FILE`, PEM"),
		text(&o.server.KeyFile, "tls-key", "the certificate's private key, `FILE`, PEM"),
		truth(&o.noOpen, "no-open", "print the address and open no browser"),
		truth(&o.stream, "stream", "draw on this machine and send pictures, for models that no browser takes; --stream=false sends the model, however large (default: from 10 million splats on)"),
	}}, {options: deviceOptions(&o.device)}, {options: []option{
		other((*colourFlag)(&o.background), "background", "black, white or R,G,B from 0 to 1; without the flag as in training, where that is recorded").oneOf("black", "white"),
		text(&o.page, "html", "write the page `FILE`, which holds viewer and scene and works offline, and serve nothing"),
		overwriteOption(&o.overwrite, "the page of --html"),
	}}}
}

func viewCommand(a *cli.Console) *cobra.Command {
	o := &viewOptions{}
	cmd := &cobra.Command{
		Use:   "view FILE|OUT",
		Short: "Show a model in the browser",
		Long: "Show a model, or the newest one of a run's folder, in the browser. The viewer is part\n" +
			"of vksplat and makes no request to any other machine. It starts at a training photo\n" +
			"where cameras.json is beside the model. Models that are too large for browsers are\n" +
			"drawn by this machine (--stream). Ctrl-C ends it.",
		Example: "  vksplat view out\n  vksplat view city_plan/out --stream\n  vksplat view model.ply --html model.html",
		Args:    one("FILE or folder"),
	}
	table := o.table()
	fs := cmd.Flags()
	register(fs, table)
	offerValues(a, cmd, table)
	o.given = fs.Changed
	cmd.RunE = runs(a, func(args []string) error {
		o.path, o.title = args[0], filepath.Base(output.Absolute(args[0]))
		if o.page == "" {
			for _, opt := range table[1].options {
				if fs.Changed(opt.name) {
					o.deviceFlags = append(o.deviceFlags, opt.name)
				}
			}
			return ofCapture(runView(a, o))
		}
		for _, opt := range slices.Concat(table[0].options, table[1].options) {
			if fs.Changed(opt.name) {
				a.Warn("--" + opt.name + " has no effect with --html")
			}
		}
		return ofCapture(writePage(a, o))
	})
	return cmd
}

// check refuses options that make no sense.
func (o *viewOptions) check() error {
	if o.server.Port < 0 || o.server.Port > 65535 {
		return fault.Usagef("give a number from 1 to 65535, or leave the flag out", "flag --port: there is no port %d", o.server.Port)
	}
	if (o.server.CertFile == "") != (o.server.KeyFile == "") {
		return fault.Usagef("give both, or neither", "--tls-cert and --tls-key belong together")
	}
	return nil
}

// runView serves a model until it is interrupted, which is its end and no error.
func runView(a *cli.Console, o *viewOptions) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	if o.path, err = plans.FindModel(o.path); err != nil {
		return err
	}
	server, err := view.Listen(o.server) // before the model is read: a port that is taken is soon told
	if err != nil {
		return err
	}
	stream, err := streams(a, o)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	var splats int
	var end func() error
	if stream {
		splats, end, err = showStreamed(a, o, server)
	} else {
		splats, end, err = showFile(a, o, server)
	}
	if err != nil {
		return errors.Join(err, server.Close())
	}
	defer func() { err = errors.Join(err, end()) }()
	ctx, stop := a.Interruptible(cli.Always("stopping"))
	defer stop()
	a.Printf("%s: %s\n", o.path, cli.Count(splats, "splat"))
	announce(a, server, o.noOpen)
	return server.Serve(ctx)
}

// announce says where a server is, and opens a browser there.
func announce(a *cli.Console, server *view.Server, noOpen bool) {
	frames.WarnReadable(a, server)
	a.Printf("open in a browser: %s\nCtrl-C ends it\n", server.URL())
	if noOpen {
		return
	}
	if err := view.OpenBrowser(server.URLOnce()); err != nil {
		a.Note("no browser could be started; open the address yourself")
	}
}

// mostInBrowser is how many splats most browsers can take.
const mostInBrowser = 10_000_000

// streams says whether this machine draws the model.
func streams(a *cli.Console, o *viewOptions) (bool, error) {
	if !o.given("stream") {
		model, err := splatfile.Open(o.path)
		if err != nil {
			return false, err
		}
		n := model.Info().N
		if err := model.Close(); err != nil {
			return false, err
		}
		if o.stream = n > mostInBrowser; o.stream {
			a.Note(fmt.Sprintf("%s are more than most browsers can take: this machine draws them and sends pictures; --stream=false sends the model all the same", cli.Count(n, "splat")))
		}
	}
	for _, flag := range o.deviceFlags {
		if !o.stream {
			a.Warn(cli.NoEffect(flag, "--stream"))
		}
	}
	return o.stream, nil
}

// showFile has the browser get the model, and returns how many splats it has.
func showFile(a *cli.Console, o *viewOptions, server *view.Server) (splats int, end func() error, err error) {
	dir, remove, err := conversionFolder(a)
	if err != nil {
		return 0, nil, err
	}
	model, what, err := viewedModel(a, o, dir, false)
	if err == nil {
		err = view.Show(server, what, model)
	}
	if err != nil {
		return 0, nil, errors.Join(err, remove())
	}
	return model.Splats, remove, nil
}

// writePage writes the page that needs no server.
func writePage(a *cli.Console, o *viewOptions) (err error) {
	if o.path, err = plans.FindModel(o.path); err != nil {
		return err
	}
	if err := output.RefuseTaken([]string{o.page}, "choose another name"); err != nil {
		return err
	}
	if output.IsFile(o.page) && !slices.Contains([]string{".html", ".htm"}, strings.ToLower(filepath.Ext(o.page))) {
		return fault.Usagef("choose another name, as in scene.html", "flag --html: %s is there already, and is no page", o.page)
	}
	if err := output.RefuseExisting("flag --html: ", o.overwrite, o.page); err != nil {
		return err
	}
	dir, remove, err := conversionFolder(a)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	model, what, err := viewedModel(a, o, dir, true)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.page, func(w io.Writer) error { return view.WritePage(w, what, model) }); err != nil {
		return err
	}
	a.Printf("page: %s\n", o.page)
	return nil
}

// conversionFolder makes the folder of converted models. It is removed at the end, also at an abrupt one.
func conversionFolder(a *cli.Console) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "vksplat-view-")
	if err != nil {
		return "", nil, output.FolderError(os.TempDir(), err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	a.OnAbort = func() { _ = remove() }
	return dir, remove, nil
}

// viewedModel is the model and how it is shown.
func viewedModel(a *cli.Console, o *viewOptions, dir string, small bool) (*view.Model, view.Scene, error) {
	model, err := view.Prepare(o.path, dir, small)
	if err != nil {
		return nil, view.Scene{}, err
	}
	if model.Converted {
		a.Note("the browser gets a converted copy of " + o.path)
	}
	for _, lost := range model.Lost {
		a.Warn(lost)
	}
	look, err := captured.LookOf(o.path, &model.Meta)
	if err != nil {
		return nil, view.Scene{}, err
	}
	config := pipeline.RenderConfig{Background: o.background}
	look.Take(&config, o.given, false)
	var cameras []scene.Camera
	if file := captured.FindCameras(o.path, captured.CamerasBeside[:1], false); file != "" {
		if cameras, err = captured.ReadCamerasOf(a, file); err != nil {
			return nil, view.Scene{}, err
		}
	}
	return model, view.Scene{Title: o.title, Start: view.StartAt(cameras, model.Meta.Vertical, model.Positions),
		Background: config.Background, Antialiased: model.Meta.Antialiased}, nil
}
