package train

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/frames"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/view"
)

// viewerOptions is what train --viewer is asked for.
type viewerOptions struct {
	Address string // as given, "" without the flag
	Server  view.ServerOptions
}

const (

	// photoSide and photoQuality are of the photos that browsers get, px and percent.
	photoSide    = 1600
	photoQuality = 85

	// photosKept are the photos in memory, some 300 KB each.
	photosKept = 16
	// lossOver is over how many steps, about, the loss that is shown is a mean.
	lossOver = 100
)

// resolve takes the address apart.
func (o *viewerOptions) resolve() error {
	if o.Address == "" {
		for _, f := range [][2]string{{"host", o.Server.Host}, {"tls-cert", o.Server.CertFile}, {"tls-key", o.Server.KeyFile}} {
			if f[1] != "" {
				return fault.Usagef("add --viewer, or leave it out", "%s", cli.NoEffect(f[0], "--viewer"))
			}
		}
		return nil
	}
	if (o.Server.CertFile == "") != (o.Server.KeyFile == "") {
		return fault.Usagef("give both, or neither", "--tls-cert and --tls-key belong together")
	}
	port := o.Address
	if host, p, err := net.SplitHostPort(o.Address); err == nil {
		ip := net.ParseIP(host)
		switch {
		case host == "" || host == "localhost" || ip != nil && ip.IsLoopback():
		case o.Server.Host == "":
			return fault.Usagef("add --host "+host+", if others shall see it", "flag --viewer: %s is not this machine alone", host)
		}
		port = p
	}
	n, err := strconv.Atoi(port)
	if err != nil || n < 0 || n > 65535 {
		return fault.Usagef("give a number from 1 to 65535, or none", "flag --viewer: there is no port %q", port)
	}
	o.Server.Port = n
	return nil
}

// liveTraining shows a run in the browser. Its methods do nothing where it is nil.
type liveTraining struct {
	r       *Run
	server  *view.Server
	Between *pipeline.Interludes
	stop    context.CancelFunc // of the run, as Ctrl-C does
	ended   chan error         // of the server, one value; nil: it does not serve yet
	end     context.CancelFunc // of the server

	turn   chan struct{} // a value: somebody's frame may be drawn
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

// NewLiveTraining takes the port, if the run is to be watched.
func NewLiveTraining(r *Run, stop context.CancelFunc) (*liveTraining, error) {
	o := &r.Viewer
	if err := o.resolve(); err != nil || o.Address == "" || r.DryRun {
		return nil, err
	}
	server, err := view.Listen(o.Server)
	if err != nil {
		return nil, err
	}
	l := &liveTraining{r: r, server: server, Between: pipeline.NewInterludes(), stop: stop, turn: make(chan struct{}, 1), told: make(chan struct{}), patience: aloneFor}
	l.here.none = make(chan struct{}, 1)
	l.turn <- struct{}{}
	return l, nil
}

// interludes is the trainer's.
func (l *liveTraining) interludes() *pipeline.Interludes {
	if l == nil {
		return nil
	}
	return l.Between
}

// viewerBytes is what a viewer keeps in RAM at most, for the plan: files of photos, one photo while it is decoded and reduced, one frame as floats and bytes.
func (r *Run) viewerBytes() int64 {
	if r.Viewer.Address == "" {
		return 0
	}
	var shot, pixels int64
	for _, c := range r.Capture.Cameras {
		n := int64(c.Width) * int64(c.Height)
		shot, pixels = max(shot, photo.DecodeBytes(c)+2*4*n), max(pixels, n)
	}
	return photosKept<<20 + 2*4*photoSide*photoSide + shot + (12+2*4)*pixels
}

// Serve begins to answer: the run is about to train.
func (l *liveTraining) Serve() error {
	if l == nil {
		return nil
	}
	r := l.r
	l.photos.background = r.Config.Background
	l.status = view.Status{Step: r.Trainer.Step(), Steps: r.Config.Iterations, Splats: r.Trainer.NSplats()}
	l.losses = make([]view.ViewLoss, len(r.Capture.Cameras))
	for i := range l.losses {
		l.losses[i].Camera = i
	}
	if err := view.ShowTraining(l.server, filepath.Base(output.Absolute(r.Capture.Root)), view.Up(r.Capture.Cameras), l); err != nil {
		return err
	}
	frames.WarnReadable(r.Console, l.server)
	r.Console.Printf("watch it in a browser: %s\n", l.server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	l.ended, l.end = make(chan error, 1), cancel
	go func() { l.ended <- l.server.Serve(ctx) }()
	return nil
}

// close ends the server.
func (l *liveTraining) close() error {
	if l == nil {
		return nil
	}
	l.Between.Release()
	if l.ended == nil {
		return l.server.Close()
	}
	l.end()
	return <-l.ended
}

// Step is called after every step.
func (l *liveTraining) Step(p pipeline.Progress) {
	if l == nil {
		return
	}
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := &l.status
	if loss := float64(p.Loss); loss-loss == 0 { // the trainer says what else there is to say
		if s.Loss == 0 {
			s.Loss = loss
		}
		s.Loss += (loss - s.Loss) / lossOver
		l.losses[l.r.Train[p.View]] = view.ViewLoss{Camera: l.r.Train[p.View], Step: p.Step, Loss: loss}
		l.history.add(p)
	}
	s.Step, s.Splats = p.Step, p.Splats
	s.Rate = l.rate.at(p.Step, now)
}

// measured is called when the held-out photos have been measured.
func (l *liveTraining) measured(step int, psnr float64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.HeldStep, l.status.HeldPSNR = step, psnr
}

// Status implements view.Training, as the methods below do.
func (l *liveTraining) Status() view.Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	s.Paused = l.Between.Held()
	switch stage(l.r.stage.Load()) {
	case stageTraining:
		s.Doing = "training"
		if l.Between.Still() {
			s.Doing = "paused"
		} else if s.Paused {
			s.Doing = "pausing"
		}
	case stageMeasuring:
		s.Doing = "measuring the held-out photos"
	case stageEnding:
		s.Doing = "writing the model"
	}
	return s
}

func (l *liveTraining) Ended() <-chan struct{} { return l.told }

func (l *liveTraining) History() []view.Moment {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.history.moments()
}

func (l *liveTraining) Losses() []view.ViewLoss {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]view.ViewLoss(nil), l.losses...)
}

func (l *liveTraining) Cameras() []view.LiveCamera {
	held := make(map[int]bool, len(l.r.Test))
	for _, i := range l.r.Test {
		held[i] = true
	}
	list := make([]view.LiveCamera, len(l.r.Capture.Cameras))
	for i := range list {
		list[i] = frames.LiveCamera(&l.r.Capture.Cameras[i], held[i])
	}
	return list
}

func (l *liveTraining) Do(_ context.Context, c view.Command) error {
	switch c {
	case view.CommandPause:
		if !l.Between.Held() {
			l.r.Console.Note("paused from the viewer; it goes on from there, or when nobody has watched for " + cli.Duration(l.patience.Seconds()) + "; Ctrl-C stops it")
		}
		l.Between.Hold()
	case view.CommandResume:
		if l.Between.Held() {
			l.r.Console.Note("going on")
		}
		l.Between.Release()
	case view.CommandSave:
		if stage(l.r.stage.Load()) == stageEnding {
			return errors.New("the last step is done: the model is being written")
		}
		l.mu.Lock()
		l.status.Save = view.Save{State: view.SaveWriting}
		l.mu.Unlock()
		l.r.Saver.saveNow()
	case view.CommandStop:
		l.r.Console.Note("stopped from the viewer")
		l.stop()
	}
	return nil
}

func (l *liveTraining) Photo(ctx context.Context, camera int) ([]byte, error) {
	return l.photos.jpeg(ctx, &l.r.Capture.Cameras[camera], camera)
}
