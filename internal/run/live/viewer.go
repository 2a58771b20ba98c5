// Package live shows a run of training in the browser while it trains.
package live

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/frames"
	"vksplat/internal/run/output"
	"vksplat/internal/run/train"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/view"
)

const (
	// photoQuality is of the photos that browsers get, in percent.
	photoQuality = 85
	// lossOver is over how many steps, about, the loss that is shown is a mean.
	lossOver = 100
)

// resolve takes the address apart.
func resolve(o *train.ViewerOptions) (server view.ServerOptions, err error) {
	if o.Address == "" {
		for _, f := range [][2]string{{"host", o.Server.Host}, {"tls-cert", o.Server.CertFile},
			{"tls-key", o.Server.KeyFile}} {
			if f[1] != "" {
				return server, fault.Usagef("add "+fault.Setting("viewer")+", or leave it out", "%s",
					cli.NoEffect(f[0], fault.Setting("viewer")))
			}
		}
		return server, nil
	}
	if (o.Server.CertFile == "") != (o.Server.KeyFile == "") {
		return server, fault.Usagef("give both, or neither", "%s and %s belong together", fault.Setting("tls-cert"),
			fault.Setting("tls-key"))
	}
	port := o.Address
	if host, p, err := net.SplitHostPort(o.Address); err == nil {
		ip := net.ParseIP(host)
		switch {
		case host == "" || host == "localhost" || ip != nil && ip.IsLoopback():
		case o.Server.Host == "":
			return server, fault.Usagef("add "+fault.Setting("host")+" "+host+", to let others see it",
				"%s: %s is not a loopback address", fault.Named("viewer"), host)
		}
		port = p
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return server, fault.Usagef("give a number from 1 to 65535, or none", "%s: there is no port %q",
			fault.Named("viewer"), port)
	}
	server = view.ServerOptions{Host: o.Server.Host, Port: n, CertFile: o.Server.CertFile, KeyFile: o.Server.KeyFile}
	return server, nil
}

// port is a server. Once it answers, close may be called several times.
type port struct {
	console *cli.Console
	server  *view.Server
	close   func() error
}

// listen opens the port, if somebody is to watch; it is nil otherwise.
func listen(o *train.ViewerOptions, console *cli.Console) (*port, error) {
	options, err := resolve(o)
	if err != nil || o.Address == "" {
		return nil, err
	}
	server, err := view.Listen(options)
	if err != nil {
		return nil, err
	}
	return &port{console, server, server.Close}, nil
}

// answer begins to answer, and says where.
func (p *port) answer() {
	frames.WarnReadable(p.console, p.server)
	p.console.Printf("watch it in a browser: %s\n", p.server.URL())
	child.Report(child.Event{Event: child.EventViewer, URL: p.server.URL()})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.server.Serve(ctx) }()
	p.close = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// training shows a run in the browser. It implements train.Observer and view.Training.
type training struct {
	console *cli.Console
	port    *port
	search  *Search        // for cameras, which the port has shown so far; nil: there was none
	run     *train.Started // the rest is set with it
	control train.Control
	between *pipeline.Interludes

	turn   chan struct{} // a value: a frame may be drawn
	memory []float32     // of frames, for who has the turn
	drawn  scene.Camera  // of the last, likewise
	pace   frames.Pace   // likewise
	photos photoShelf

	told     chan struct{} // closed when status says how the run ended
	patience time.Duration // aloneFor, but in tests

	mu      sync.Mutex
	status  view.Status
	history history
	losses  []view.ViewLoss // by camera
	rate    rate
	here    attendance
}

// New opens the port, if the run is to be watched. It is one of train.Options.Observers of the command.
func New(o *train.Options, console *cli.Console) (train.Observer, error) {
	if o.DryRun {
		_, err := resolve(&o.Viewer)
		return nil, err
	}
	p, err := listen(&o.Viewer, console)
	if err != nil || p == nil {
		return nil, err
	}
	return newTraining(console, p), nil
}

func newTraining(console *cli.Console, p *port) *training {
	l := &training{console: console, port: p, turn: make(chan struct{}, 1), told: make(chan struct{}),
		patience: aloneFor}
	l.here.none = make(chan struct{}, 1)
	l.turn <- struct{}{}
	return l
}

// Observe shows what happened.
func (l *training) Observe(e train.Event) error {
	switch e := e.(type) {
	case *train.Started:
		return l.serve(e)
	case *train.Stepped:
		l.step(e.Progress)
	case *train.Scored:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.status.HeldStep, l.status.HeldPSNR = e.Step, e.PSNR
	case *train.Saved:
		l.saved(e)
	case *train.Ended:
		l.over(e)
	}
	return nil
}

// serve begins to answer: the run is about to train.
func (l *training) serve(r *train.Started) error {
	l.run, l.control, l.between = r, r.Control, r.Control.Between()
	l.photos.background = r.Config.Background
	l.status = view.Status{Step: r.Line.Step, Steps: r.Line.Total, Splats: r.Splats}
	l.losses = make([]view.ViewLoss, len(r.Capture.Cameras))
	for i := range l.losses {
		l.losses[i].Camera = i
	}
	if err := view.ShowTraining(l.port.server, filepath.Base(output.Absolute(r.Capture.Root)),
		view.Up(r.Capture.Cameras), l); err != nil {
		return err
	}
	if l.search != nil {
		l.search.handOver()
	} else {
		l.port.answer()
	}
	return nil
}

// Close ends the server, unless it still shows the search for cameras.
func (l *training) Close() error {
	switch {
	case l.run != nil:
		l.between.Release()
	case l.search != nil:
		return nil
	}
	return l.port.close()
}

// step notes a step.
func (l *training) step(p pipeline.Progress) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.status
	if loss := float64(p.Loss); loss-loss == 0 { // the trainer says what else there is to say
		if s.Loss == 0 {
			s.Loss = loss
		}
		s.Loss += (loss - s.Loss) / lossOver
		l.losses[l.run.Train[p.View]] = view.ViewLoss{Camera: l.run.Train[p.View], Step: p.Step, Loss: loss}
		l.history.add(p)
	}
	s.Step, s.Splats = p.Step, p.Splats
	s.Rate = l.rate.at(p.Step, now)
}

// Status implements view.Training, as the methods below do.
func (l *training) Status() view.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Paused = l.between.Held()
	switch l.control.Stage() {
	case train.StageTraining:
		s.Doing = "training"
		if l.between.Still() {
			s.Doing = "paused"
		} else if s.Paused {
			s.Doing = "pausing"
		}
	case train.StageMeasuring:
		s.Doing = "measuring the held-out photos"
	case train.StageEnding:
		s.Doing = "writing the model"
	}
	return s
}

func (l *training) Ended() <-chan struct{} { return l.told }

func (l *training) History() []view.Moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.moments()
}

func (l *training) Losses() []view.ViewLoss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]view.ViewLoss(nil), l.losses...)
}

func (l *training) Cameras() []view.LiveCamera {
	held := make(map[int]bool, len(l.run.Test))
	for _, i := range l.run.Test {
		held[i] = true
	}
	list := make([]view.LiveCamera, len(l.run.Capture.Cameras))
	for i := range list {
		list[i] = frames.LiveCamera(&l.run.Capture.Cameras[i], held[i])
	}
	return list
}

func (l *training) Do(_ context.Context, c view.Command) error {
	switch c {
	case view.CommandPause:
		if !l.between.Held() {
			l.console.Note("paused from the viewer; resume it there, or it resumes after " +
				cli.Duration(l.patience.Seconds()) + " without a viewer; Ctrl-C stops it")
		}
		l.between.Hold()
	case view.CommandResume:
		if l.between.Held() {
			l.console.Note("continuing")
		}
		l.between.Release()
	case view.CommandSave:
		if l.control.Stage() == train.StageEnding {
			return errors.New("the last step is done: the model is being written")
		}
		l.mu.Lock()
		l.status.Save = view.Save{State: view.SaveWriting}
		l.mu.Unlock()
		l.control.SaveNow()
	case view.CommandStop:
		l.console.Note("stopped from the viewer")
		l.control.Stop()
	}
	return nil
}

func (l *training) Photo(ctx context.Context, camera int) ([]byte, error) {
	return l.photos.jpeg(ctx, &l.run.Capture.Cameras[camera], camera)
}
