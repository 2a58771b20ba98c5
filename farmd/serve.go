package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/worker"

	"vksplat/farm/pass"
	"vksplat/farm/store"
	"vksplat/farmd/front"
	"vksplat/farmd/gate"
	"vksplat/farmd/registry"
	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/lockfile"
)

// settings are the flags of serve.
type settings struct {
	data, listen, address, roots, postgres, level string
	page, metrics                                 int
}

// Files of the data folder beside those of the registry.
const (
	lockFile    = "lock"
	addressFile = "address"
	queueFile   = "queue.db"
)

// serve runs the farm until a signal comes.
func serve(s settings) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), cli.StopSignals()...)
	defer cancel()
	began := time.Now()
	if s.data, err = filepath.Abs(s.data); err != nil {
		return err
	}
	if err := os.MkdirAll(s.data, 0o700); err != nil {
		return &fault.Error{Op: "open farm", Path: s.data, Err: fault.TrimPath(err), Kind: fault.ErrTryAgain}
	}
	if err := os.Chmod(s.data, 0o700); err != nil { // keys are below
		return err
	}
	unlock, err := lockfile.Try(filepath.Join(s.data, lockFile), lockfile.Exclusive)
	if errors.Is(err, lockfile.ErrLocked) {
		return &fault.Error{Op: "open farm", Path: s.data, Err: errors.New("another process serves it"),
			Kind: fault.ErrTryAgain}
	} else if err != nil {
		return err
	}
	defer unlock()
	listener, err := net.Listen("tcp", s.listen)
	if err != nil {
		return &fault.Error{Op: "listen", Path: s.listen, Err: err, Hint: "choose another port by --listen",
			Kind: fault.ErrTryAgain}
	}
	defer listener.Close()
	s.address = addressOf(s.address, listener.Addr())
	reg, err := openRegistry(s)
	if err != nil {
		return err
	}
	addressAt := filepath.Join(s.data, addressFile)
	if err := atomicfile.Write(addressAt, func(w io.Writer) error {
		_, err := io.WriteString(w, s.address+"\n")
		return err
	}); err != nil {
		return keepError("write address", addressAt, err)
	}
	f, err := open(ctx, s, reg)
	if err != nil {
		return err
	}
	defer f.close()
	f.engine.speak()
	f.welcome(s, time.Since(began))
	served := make(chan error, 1)
	go func() { served <- f.front.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr, "vksplat-farmd: stopping; workers go on with their tasks and connect again")
		return nil
	}
}

// openRegistry opens the farm in the data folder. A new one is made only where the store is as the file of roots says;
// a farm that exists serves without: shares may be mounted later.
func openRegistry(s settings) (*registry.Registry, error) {
	var roots store.Roots
	if s.roots != "" {
		var err error
		if roots, err = store.ReadRootsFile(s.roots); err != nil {
			return nil, err
		}
	}
	isNew := !registry.Exists(s.data)
	for _, name := range slices.Sorted(maps.Keys(roots)) {
		_, err := roots.Open(name)
		if err != nil && isNew {
			return nil, fault.WithHint(fmt.Errorf("root %s: %w", name, err), fault.Hint(err))
		} else if err != nil {
			fmt.Fprintf(os.Stderr, "vksplat-farmd: root %s: %v\n", name, err)
		}
	}
	if isNew {
		if err := registry.Create(s.data); err != nil {
			return nil, keepError("set up farm", s.data, err)
		}
	}
	return registry.Open(s.data)
}

// farm is everything that serves.
type farm struct {
	registry *registry.Registry
	engine   *engine
	flows    worker.Worker
	enrol    *enrolServer
	page     *page
	front    *front.Front
	database *database
	kept     string // what became of a database of another version, "" if there was none
}

// open starts all parts but the open port.
func open(ctx context.Context, s settings, reg *registry.Registry) (f *farm, err error) {
	f = &farm{registry: reg, front: new(front.Front)}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	g := gate.New(reg.Seal())
	g.Namespace, g.FlowQueue, g.FlowType = namespace, flowQueue, flowType
	g.Revoked, g.HasPool = reg.Revoked, reg.HasPool
	var db *database
	if s.postgres != "" {
		db, err = openPostgres(ctx, s.postgres)
	} else {
		db, err = openSQLite(s.data)
	}
	if err != nil {
		return f, err
	}
	f.database, f.kept = db, db.kept
	if db.path != "" {
		go db.keepTrim(ctx)
	}
	if f.engine, err = startEngine(ctx, s, reg, g, db, f.front.Proved); err != nil {
		return f, err
	}
	g.OpenJobs = f.engine.openJobs
	worker.SetStickyWorkflowCacheSize(flowCache)
	if f.flows, err = startFlows(f.engine.client, s.roots, g.Admit); err != nil {
		return f, err
	}
	if f.page, err = startPage(s.page, reg, f.engine.frontend); err != nil {
		return f, err
	}
	if f.enrol, err = startEnrol(reg); err != nil {
		return f, err
	}
	f.front.Backend, f.front.Enrol = f.engine.frontend, f.enrol.take
	return f, nil
}

// close stops the parts, the open port first.
func (f *farm) close() {
	if f.engine != nil {
		f.engine.hush() // Temporal complains of requests that end here
	}
	if f.enrol != nil {
		f.enrol.close()
	}
	f.front.Close()
	if f.page != nil {
		closeServer(f.page.server)
	}
	if f.flows != nil {
		f.flows.Stop()
	}
	if f.engine != nil {
		f.engine.close()
	}
	if f.database != nil && f.database.path != "" {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		_ = f.database.end(ctx) // else the next start reads the log
	}
}

// welcome says what serves where and, while nobody has joined, how others do.
func (f *farm) welcome(s settings, took time.Duration) {
	where := "jobs in " + filepath.Join(s.data, queueFile)
	if s.postgres != "" {
		where = "jobs in Postgres"
	}
	if f.kept != "" {
		fmt.Printf("the jobs are of another version of the server and were kept in %s: this one starts without jobs\n"+
			"  owners submit theirs again; tasks that are done are not done again\n", f.kept)
	}
	fmt.Printf("the farm serves at %s after %.1f s (%s)\n", s.address, took.Seconds(), where)
	if f.page != nil {
		fmt.Printf("page: http://%s\n", f.page.address)
	}
	if s.roots == "" {
		fmt.Print("no file of roots was found, and jobs end at once without: name one by --roots, as on workers\n")
	}
	passes, tokens, err := f.registry.List()
	switch {
	case len(passes) > 0 || err != nil:
		return
	case len(tokens) > 0:
		fmt.Print("no machine has joined yet; if a token was lost, make another: vksplat-farmd token --role worker\n")
		return
	}
	fmt.Print("\nThis is a new farm. Each token below is for one machine, once, within a day.\n")
	for _, t := range []struct {
		what string
		who  pass.Who
	}{
		{"where you submit jobs from", pass.Who{Role: pass.Admin, Name: "admin", Owner: "admin"}},
		{"on a machine that is to work", pass.Who{Role: pass.Worker, Pools: []string{pass.DefaultPool}}},
	} {
		token, err := f.registry.NewToken(s.address, registry.Grant{Who: t.who,
			Expires: time.Now().Add(24 * time.Hour)})
		if err != nil {
			fmt.Fprintln(os.Stderr, "vksplat-farmd:", err)
			return
		}
		fmt.Printf("\n%s:\n    %s %s\n", t.what, fault.Command("farm join"), token)
	}
	fmt.Print("\nMore: vksplat-farmd token --role worker, or --role submit --name NAME\n")
}

// addressOf is what others connect to: what was said, or else where this machine is found.
func addressOf(said string, bound net.Addr) string {
	tcp := bound.(*net.TCPAddr)
	port := fmt.Sprint(tcp.Port)
	if said == "" {
		if !tcp.IP.IsUnspecified() {
			return tcp.String()
		}
		return net.JoinHostPort(ownHost(), port)
	}
	if _, _, err := net.SplitHostPort(said); err != nil {
		said = net.JoinHostPort(strings.Trim(said, "[]"), port)
	}
	return said
}

// ownHost is an address of this machine that others can reach, as far as it can tell; else its name.
func ownHost() string {
	// That of the way out comes first: bridges of containers have addresses, too. Nothing is sent.
	if c, err := net.Dial("udp4", "192.0.2.1:9"); err == nil {
		defer c.Close()
		return c.LocalAddr().(*net.UDPAddr).IP.String()
	}
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return host
}

// readAddress is what serve last wrote.
func readAddress(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, addressFile))
	if err != nil {
		return "", &fault.Error{Op: "make token", Path: data, Err: errors.New("the farm has not served yet"),
			Hint: "start vksplat-farmd serve first, or name the farm's HOST:PORT by --address", Kind: fault.ErrSetup}
	}
	return strings.TrimSpace(string(text)), nil
}
