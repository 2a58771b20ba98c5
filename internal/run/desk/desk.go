package desk

import (
	"context"
	"os"
	"sync"

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

// desk is the state behind the page. Its jobs are lost when it ends; what they wrote is not.
type desk struct {
	places
	Options
	server  *view.Server
	ctx     context.Context // of all processes
	running sync.WaitGroup

	checking  chan struct{}               // holds a value while a check is worked on
	summarise func(dir string) runSummary // of a run's records; tests have slow ones

	making    sync.Mutex       // of names and folders; disks are waited for
	reserved  map[string]bool  // paths of what jobs will make
	uploading map[string]int64 // bytes of the files that come in, by path

	mu         sync.Mutex
	jobs       []*job // oldest first
	last       int    // number of a job
	checks     map[string]*check
	rehearsing context.CancelFunc // ends the rehearsal that has the device, if one does
	shows      []*shown
	lastShown  int
	seen       runList
}

// newDesk makes the desk of a folder.
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
	return &desk{places: p, Options: *o, ctx: ctx, checking: make(chan struct{}, 1), summarise: p.summariseRun,
		reserved: map[string]bool{}, uploading: map[string]int64{}, checks: map[string]*check{},
		seen: runList{visited: map[string]bool{}}}, nil
}

// serve answers until ctx ends, and then waits for all processes: trainings save what they have.
func (d *desk) serve(ctx context.Context, s *view.Server) error {
	d.server = s
	d.handle(s)
	err := s.Serve(ctx)
	d.running.Wait()
	return err
}

// trainings counts those that run.
func (d *desk) trainings() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, j := range d.jobs {
		if j.stop != nil && j.Kind == kindTrain {
			n++
		}
	}
	return n
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
		if n := d.trainings(); n > 0 {
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
