package show

import (
	"context"
	"errors"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/frames"
	"vksplat/internal/run/models"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/render"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/splatfile"
	"vksplat/scene/trajectory"
	"vksplat/view"
)

// streamed is a finished model that this machine draws for browsers, a frame at a time.
type streamed struct {
	cameras []scene.Camera // of the photos, in the frame of drawing, which is that of render
	list    []view.LiveCamera
	turn    chan struct{} // a value: a frame may be drawn
	closed  chan struct{}

	// For who has the turn.
	device   *pipeline.Device
	renderer *pipeline.Renderer
	memory   []float32
	pace     frames.Pace
}

// firstFrame is about what browsers ask for, px: room for larger frames is made when they come.
var firstFrame = trajectory.WithFOV(scene.Camera{Width: 1280, Height: 720, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}},
	startFOV)

// startFOV is of the free camera where there is no photo, in radians.
const startFOV = 1.05

// showStreamed has this machine draw the model, and returns how many splats it has.
func showStreamed(console *cli.Console, o *Options, server *view.Server) (_ int, end func() error, err error) {
	defer func() { err = remedy.Memory(remedy.Ceiling(err, o.Device)) }()
	if err := models.LimitHeap(console, o.Device); err != nil {
		return 0, nil, err
	}
	r := render.NewOptions()
	r.File, r.Config.Background, r.Given = o.Path, o.Background, o.Given
	r.Cameras = captured.FindCameras(o.Path, captured.CamerasBeside[:1], false)
	splats, info, err := models.Open(console, r.File)
	if err != nil {
		return 0, nil, err
	}
	if err := r.Look(console, &info, false); err != nil {
		return 0, nil, err
	}
	capture := &scene.Capture{}
	if r.Cameras != "" {
		if capture, err = render.ReadViews(console, r, models.OriginOf(&info)); err != nil {
			return 0, nil, err
		}
	}
	device, err := models.OpenDevice(console, o.Device)
	if err != nil {
		return 0, nil, err
	}
	s := &streamed{device: device, turn: make(chan struct{}, 1), closed: make(chan struct{})}
	origin := models.OriginOf(&info)
	at := s.place(capture, somePlaces(splats), &info)
	drawn := splats.FromCapture(at.frame, origin)
	n, means := splats.N, splats.Means // an editor needs no more of the file, so that the rest makes room
	r.Config.Looks, r.Config.Smaller, r.Config.Kept = true, "", o.kept(n)
	if s.renderer, err = pipeline.NewRenderer(device, drawn, []scene.Camera{firstFrame}, r.Config); err != nil {
		return 0, nil, errors.Join(err, models.CloseDevice(device))
	}
	models.TellShared(console, s.renderer)
	s.turn <- struct{}{}
	end = s.close
	if o.Edit {
		e := newEditor(console, o, s, at, means, drawn, origin)
		e.setCameras(capture, origin)
		end = e.close
		if o.Edits != "" {
			if err := e.resume(o.Edits); err != nil {
				return 0, nil, errors.Join(err, end())
			}
		}
		err = view.ShowEdited(server, o.Title, at.up, at.start, e.frame(), editFormats(), e.folder, e)
	} else {
		err = view.ShowStreamed(server, o.Title, n, at.up, at.start, s)
	}
	if err != nil {
		return 0, nil, errors.Join(err, end())
	}
	return n, end, nil
}

// placed is where a model is drawn.
type placed struct {
	frame scene.Frame     // of drawing
	start view.LiveCamera // where the free camera stands first
	up    [3]float64
}

// place brings the cameras, which are in the capture's frame, into that of drawing, and says where that is, where the
// free camera stands first, and up. somewhere are positions of splats as the file has them.
func (s *streamed) place(capture *scene.Capture, somewhere [][3]float64, info *splatfile.Info) placed {
	if len(capture.Cameras) > 0 {
		render.Normalise(capture, nil)
		s.cameras = capture.Cameras
		s.list = make([]view.LiveCamera, len(s.cameras))
		for i := range s.list {
			s.list[i] = frames.LiveCamera(&s.cameras[i], capture.HeldOut[s.cameras[i].PhotoName()])
		}
		return placed{capture.Frame, s.list[0], view.Up(s.cameras)}
	}
	s.list = []view.LiveCamera{}
	c, frame, up := view.Overview(info.Meta.Vertical, somewhere)
	c.Width, c.Height = firstFrame.Width, firstFrame.Height
	alone := &scene.Capture{Cameras: []scene.Camera{trajectory.WithFOV(c, startFOV)}}
	alone.NormaliseTo(frame, 1)
	for k, x := range models.OriginOf(info) {
		frame.Center[k] += x // the cameras of others stand where the model does
	}
	return placed{frame, frames.LiveCamera(&alone.Cameras[0], false), up}
}

// somePlaces are the positions of some of the splats, evenly over the model.
func somePlaces(s *scene.Splats) [][3]float64 {
	const most = 200_000
	list := make([][3]float64, 0, min(s.N, most))
	for i := 0; i < s.N; i += 1 + (s.N-1)/most {
		list = append(list, [3]float64{float64(s.Means[3*i]), float64(s.Means[3*i+1]), float64(s.Means[3*i+2])})
	}
	return list
}

// Cameras implements view.Streamed, as Frame does.
func (s *streamed) Cameras() []view.LiveCamera { return s.list }

// errOver is the error of a frame that is asked for when the server is ending.
var errOver = errors.New("vksplat is shutting down")

// Frame draws what a browser asks for.
func (s *streamed) Frame(ctx context.Context, q view.FrameQuery) ([]byte, error) {
	if q.Mode == view.ModeError {
		return nil, errors.New("there are no photos to compare with")
	}
	done, err := s.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	img, err := s.draw(&q)
	if err != nil {
		return nil, err
	}
	return photo.JPEG(img, frames.Quality)
}

// take waits for the turn, which done gives back.
func (s *streamed) take(ctx context.Context) (done func(), err error) {
	select {
	case <-s.turn:
		return func() { s.turn <- struct{}{} }, nil
	case <-s.closed:
		return nil, errOver
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *streamed) draw(q *view.FrameQuery) (scene.Image, error) {
	s.pace.Fit(q, true)
	c, begin := frames.Camera(s.cameras, q), time.Now()
	rgb, err := s.show(&c, frames.Looks[q.Mode])
	if err != nil {
		return scene.Image{}, err
	}
	s.pace.Observe(c.Width*c.Height, q.Still, begin, 0)
	return frames.Picture(q.Mode, rgb, &c, scene.Image{}), nil
}

// show draws a look of the model. The picture is good until the next.
func (s *streamed) show(c *scene.Camera, look pipeline.Look) ([]float32, error) {
	rgb, err := s.renderer.Show(s.memory, *c, look)
	switch {
	case pipeline.IsShortage(err):
		return nil, errors.New(
			"too many splats in view for device memory: move closer, or give view more memory (" +
				fault.Setting("max-vram") + ")")
	case err != nil:
		return nil, err
	}
	s.memory = rgb
	return rgb, nil
}

// close waits for the frame that is being drawn, the last, and gives the device back.
func (s *streamed) close() error {
	close(s.closed)
	<-s.turn
	return errors.Join(s.renderer.Close(), models.CloseDevice(s.device))
}
