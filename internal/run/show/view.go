package show

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/child"
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

// Options is everything that view is asked for.
type Options struct {
	Path        string // a model, or the folder of a run; then its newest model
	Title       string
	Page        string // write this page and serve nothing
	Overwrite   bool   // it may be there already
	NoOpen      bool
	Stream      bool   // this machine draws
	Edit        bool   // browsers change the model, which needs Stream
	Edits       string // file of an edit to continue
	ExportTo    string // folder of what they make of it; "": the current one
	Server      view.ServerOptions
	Background  [3]float32
	MaxSplats   int                    // of a streamed model that the browser draws; 0: as it chooses
	Device      pipeline.DeviceOptions // that draws
	Given       func(flag string) bool
	DeviceFlags []string // those given that choose and limit the device
}

// Check refuses options of the server that make no sense.
func (o *Options) Check() error {
	if (o.Server.CertFile == "") != (o.Server.KeyFile == "") {
		return fault.Usagef("give both, or neither", "%s and %s belong together", fault.Setting("tls-cert"),
			fault.Setting("tls-key"))
	}
	return nil
}

// Run serves a model until it is interrupted, which is its end and no error.
func Run(console *cli.Console, o *Options) (err error) {
	if err := o.Check(); err != nil {
		return err
	}
	if o.Path, err = plans.FindModel(o.Path); err != nil {
		return err
	}
	if err := o.checkEdit(); err != nil {
		return err
	}
	server, err := view.Listen(o.Server) // before the model is read, to report a port that is taken at once
	if err != nil {
		return err
	}
	stream, err := streams(console, o)
	if err != nil {
		return errors.Join(err, server.Close())
	}
	if stream && o.MaxSplats > 0 {
		console.Warn(cli.NoEffect("max-splats", "a streamed model that the browser draws"))
	}
	var splats int
	var end func() error
	if stream {
		splats, end, err = showStreamed(console, o, server)
	} else {
		splats, end, err = showFile(console, o, server)
	}
	if err != nil {
		return errors.Join(err, server.Close())
	}
	defer func() { err = errors.Join(err, end()) }()
	ctx, stop := console.Interruptible(cli.Always("stopping"))
	defer stop()
	console.Printf("%s: %s\n", o.Path, cli.Count(splats, "splat"))
	Announce(console, server, o.NoOpen)
	return server.Serve(ctx)
}

// Announce says where a server is, and opens a browser there.
func Announce(console *cli.Console, server *view.Server, noOpen bool) {
	frames.WarnReadable(console, server)
	console.Printf("open in a browser: %s\nCtrl-C ends it\n", server.URL())
	child.Report(child.Event{Event: child.EventViewer, URL: server.URL()})
	if noOpen {
		return
	}
	if err := view.OpenBrowser(server.URLOnce()); err != nil {
		console.Note("could not start a browser; open the address yourself")
	}
}

// mostInBrowser is how many splats most browsers can take.
const mostInBrowser = 10_000_000

// streams says whether this machine draws the model.
func streams(console *cli.Console, o *Options) (bool, error) {
	switch {
	case o.Edit:
		o.Stream = true
	case !o.Given("stream"):
		model, err := splatfile.Open(o.Path)
		if err != nil {
			return false, err
		}
		n, parts := model.Info().N, model.Info().Format == splatfile.StreamedFormat
		if err := model.Close(); err != nil {
			return false, err
		}
		if o.Stream = n > mostInBrowser && !parts; o.Stream {
			console.Note(fmt.Sprintf("%s are too many for most browsers: this machine renders them and sends "+
				"pictures; %s=false sends the model all the same", cli.Count(n, "splat"), fault.Setting("stream")))
		}
	}
	for _, flag := range o.DeviceFlags {
		if !o.Stream {
			console.Warn(cli.NoEffect(flag, fault.Setting("stream")))
		}
	}
	return o.Stream, nil
}

// showFile has the browser get the model, and returns how many splats it has.
func showFile(console *cli.Console, o *Options, server *view.Server) (splats int, end func() error, err error) {
	dir, remove, err := conversionFolder(console)
	if err != nil {
		return 0, nil, err
	}
	model, what, err := viewedModel(console, o, dir, false)
	if err == nil {
		err = view.Show(server, what, model)
	}
	if err != nil {
		return 0, nil, errors.Join(err, remove())
	}
	return model.Splats, func() error { return errors.Join(model.Close(), remove()) }, nil
}

// WritePage writes the page that needs no server.
func WritePage(console *cli.Console, o *Options) (err error) {
	if o.Path, err = plans.FindModel(o.Path); err != nil {
		return err
	}
	if err := output.RefuseTaken([]string{o.Page}, "choose another name"); err != nil {
		return err
	}
	if output.IsFile(o.Page) && !slices.Contains([]string{".html", ".htm"}, strings.ToLower(filepath.Ext(o.Page))) {
		return fault.Usagef("choose another name, as in scene.html", "%s: %s already exists and is not a page",
			fault.Named("html"), o.Page)
	}
	if err := output.RefuseExisting("html", o.Overwrite, o.Page); err != nil {
		return err
	}
	dir, remove, err := conversionFolder(console)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	model, what, err := viewedModel(console, o, dir, true)
	if err != nil {
		return err
	}
	if err := atomicfile.Write(o.Page, func(w io.Writer) error { return view.WritePage(w, what, model) }); err != nil {
		return err
	}
	console.Printf("page: %s\n", o.Page)
	return nil
}

// conversionFolder makes the folder of converted models. It is removed at the end, also at an abrupt one.
func conversionFolder(console *cli.Console) (dir string, remove func() error, err error) {
	dir, err = os.MkdirTemp("", "vksplat-view-")
	if err != nil {
		return "", nil, output.FolderError(os.TempDir(), err)
	}
	remove = func() error { return os.RemoveAll(dir) }
	console.OnAbort = func() { _ = remove() }
	return dir, remove, nil
}

// viewedModel is the model and how it is shown.
func viewedModel(console *cli.Console, o *Options, dir string, small bool) (*view.Model, view.Scene, error) {
	model, err := view.Prepare(o.Path, dir, small)
	if err != nil {
		return nil, view.Scene{}, err
	}
	if o.MaxSplats > 0 && !model.Streamed() {
		console.Warn(cli.NoEffect("max-splats", "a streamed model"))
	}
	if model.Converted {
		console.Note("the browser receives a converted copy of " + o.Path)
	}
	for _, lost := range model.Lost {
		console.Warn(lost)
	}
	look, err := captured.LookOf(o.Path, &model.Meta)
	if err != nil {
		return nil, view.Scene{}, err
	}
	config := pipeline.RenderConfig{Background: o.Background}
	look.Take(&config, o.Given, false)
	var cameras []scene.Camera
	if file := captured.FindCameras(o.Path, captured.CamerasBeside[:1], false); file != "" {
		if cameras, err = captured.ReadCamerasOf(console, file); err != nil {
			return nil, view.Scene{}, err
		}
	}
	return model, view.Scene{Title: o.Title, Start: view.StartAt(cameras, model.Meta.Vertical, model.Positions),
		Background: config.Background, Antialiased: model.Meta.Antialiased,
		Focal: scene.TrainedFocal(cameras), MaxSplats: o.MaxSplats}, nil
}
