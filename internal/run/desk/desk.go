package desk

import (
	"context"
	"os"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/show"
	"vksplat/view"
)

// Options is everything that open is asked for.
type Options struct {
	Folder     string // what can be chosen is in it; "": the home folder
	NoOpen     bool
	Server     view.ServerOptions
	MaxUpload  int64    // bytes of a folder of uploads
	DeviceArgs []string // flags that choose and limit the device, for every command that uses it
	Program    string   // this program; jobs are processes of it
	Version    string
}

// desk is the state behind the page.
type desk struct {
	places
	Options
	server   *view.Server
	queue    *queue
	checks   *checks
	uploads  *uploads
	runs     *runList
	reserved map[string]bool // paths of what jobs will make; the lock of uploads guards it
}

func newDesk(ctx context.Context, o *Options) (*desk, error) {
	folder := o.Folder
	if folder == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fault.Usagef("name a folder", "open: there is no home folder: %w", err)
		}
		folder = home
	}
	if output.IsFile(folder) {
		return nil, fault.Usagef("name the folder that it is in", "open: %s is a file", folder)
	}
	if !output.IsFolder(folder) {
		return nil, fault.Usagef("check the spelling, or name another", "open: there is no folder %s", folder)
	}
	p := places{output.Resolved(folder)}
	runs := &runList{places: p, summarise: p.summariseRun, visited: map[string]bool{}}
	q := &queue{ctx: ctx, program: o.Program, limited: p.endedEarly, changed: runs.forget}
	return &desk{places: p, Options: *o, queue: q, runs: runs, reserved: map[string]bool{},
		checks:  &checks{ctx: ctx, running: &q.running, turn: make(chan struct{}, 1), byKey: map[string]*check{}},
		uploads: &uploads{places: p, most: o.MaxUpload, coming: map[string]int64{}}}, nil
}

// serve answers until ctx ends, and then waits for all processes: trainings save what they have.
func (d *desk) serve(ctx context.Context, s *view.Server) error {
	d.server = s
	d.handle(s)
	err := s.Serve(ctx)
	d.queue.running.Wait()
	return err
}

// Run serves the page until it is interrupted, which is its end and no error.
func Run(console *cli.Console, o *Options) (err error) {
	if err := (&show.Options{Server: o.Server}).Check(); err != nil {
		return err
	}
	if o.MaxUpload <= 0 {
		return fault.Usagef("give 1 or more", "%s: %d gigabytes leave room for nothing", fault.Named("max-upload"),
			o.MaxUpload/1e9)
	}
	if o.Program == "" {
		if o.Program, err = os.Executable(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, err := newDesk(ctx, o)
	if err != nil {
		return err
	}
	server, err := view.Listen(o.Server)
	if err != nil {
		return err
	}
	interrupted, stop := console.Interruptible(func() string {
		if n := d.queue.trainings(); n > 0 {
			return "stopping; " + cli.Count(n, "training") + " saves first"
		}
		return "stopping"
	})
	defer stop()
	context.AfterFunc(interrupted, cancel)
	console.Printf("folder: %s\n", d.root)
	show.Announce(console, server, o.NoOpen)
	return d.serve(interrupted, server)
}
