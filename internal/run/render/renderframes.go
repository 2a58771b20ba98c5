package render

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// rendering is the drawing and writing of all pictures.
type rendering struct {
	o        *Options
	shots    []shot
	kept     []bool // the file already exists
	kind     picture.Options
	unit     float64 // of depths: 1 in the capture's frame is so much in that of training
	renderer *pipeline.Renderer
	writers  *pictureWriters
	video    *videoPipe // nil: none
	missing  bool       // the program that makes the video
	turn     chan struct{}
	panorama *panorama // nil: pictures are drawn as they are
	release  func()    // of the folder of pictures that are written in place of a video
	first    time.Time // the first picture was drawn
}

// renderAll draws and writes the shots, which are in the training frame with the model.
func renderAll(console *cli.Console, o *Options, device *pipeline.Device, m *subject, shots []shot,
	frame scene.Frame) (err error) {
	r := &rendering{o: o, shots: shots, kind: o.Picture(), unit: frame.Scale, turn: make(chan struct{}),
		release: func() {}}
	close(r.turn)
	defer func() { r.release() }()
	cams := camerasOf(shots)
	if o.Projection == ProjectEquirect {
		r.panorama = newPanorama(o.Size, cams)
		cams = r.panorama.cameras(cams)
		if err := r.panorama.check(cams, o.besideBytes(), device.RAM()); err != nil {
			return err
		}
	}
	if err := startVideo(console, r, cams); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.video.abandon()) }()
	ctx, stop := console.Stoppable(cli.Always("stopping after the pictures that are being written"))
	defer stop()
	if err := m.settle(console, o, device, cams, r.config(ctx), frame); err != nil {
		return err
	}
	if err := keepFormer(console, r, m); err != nil {
		return err
	}
	todo := r.todo()
	if len(todo) == 0 {
		return sayResults(console, r)
	}
	if r.renderer, err = m.renderer(device, cams, r.config(ctx)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.renderer.Close()) }()
	models.TellShared(console, r.renderer)
	console.Printf("%s, %s, %s of %s\n", device.Name(), m.what(), cli.Count(len(todo), "picture"), r.resolution())
	began := time.Now()
	show := meter.New(console.Stdout, meter.Auto, 0, len(todo))
	show.Draws, show.Text = true, console.Follow(show)
	defer show.Interrupt()
	atOnce := r.renderer.AtOnce()
	if r.panorama != nil {
		atOnce = r.panorama.atOnce(atOnce)
	}
	r.writers = newPictureWriters(atOnce, show)
	if err := errors.Join(r.draw(ctx, todo), r.writers.finish()); err != nil {
		return firstOf(r.writers.failed(), err)
	}
	show.Interrupt()
	seconds := time.Since(began).Seconds()
	if err := r.video.finish(); err != nil {
		return err
	}
	console.Printf("%s in %.1f s: %.1f a second%s\n", cli.Count(len(todo), "picture"), seconds,
		float64(len(todo))/seconds, r.bandsText())
	m.report(console, r, device)
	return sayResults(console, r)
}

// config says how the pictures are drawn, until ctx ends.
func (r *rendering) config(ctx context.Context) pipeline.RenderConfig {
	c := r.o.Config
	c.Packed, c.Depth = r.kind.Bytes() && r.panorama == nil, r.o.Depth || r.o.Normals
	c.Beside = r.o.besideBytes()
	c.Stop, c.Part = func() error { return stopped(ctx) }, r.part // large pictures take long
	if r.kind.Alpha {
		c.Background = [3]float32{}
	}
	return c
}

func sayResults(console *cli.Console, r *rendering) error {
	if r.o.Out != "" && r.o.Format != FormatNone {
		if r.o.single != "" {
			console.Printf("picture: %s\n", r.o.single)
		} else {
			console.Printf("pictures: %s\n", r.o.Out)
		}
	}
	if r.missing {
		return r.errorWithoutFFmpeg()
	}
	if r.video != nil {
		console.Printf("video: %s\n", r.o.Video)
	}
	return nil
}

// firstOf returns the error that came first, where it is known, in place of all that followed from it.
func firstOf(first, all error) error {
	if first != nil {
		return first
	}
	return all
}

// bandsText says that pictures did not fit memory.
func (r *rendering) bandsText() string {
	if n := r.renderer.Bands(); n > 1 {
		return ", in " + cli.Count(n, "band")
	}
	return ""
}

func (r *rendering) resolution() string {
	if r.panorama != nil {
		return captured.Resolution([]scene.Camera{{Width: r.panorama.width, Height: r.panorama.height}})
	}
	return captured.Resolution(camerasOf(r.shots))
}

// todo lists the shots that must be drawn: those that are not kept and, for a video, all.
func (r *rendering) todo() (list []int) {
	for i := range r.shots {
		if r.video != nil || !r.kept[i] {
			list = append(list, i)
		}
	}
	return list
}

// stopped returns the error of a user's stop, nil without one.
func stopped(ctx context.Context) error {
	if ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	return nil
}

// part shows that a part of a picture has been drawn.
func (r *rendering) part(done, of int) {
	if r.panorama != nil {
		done, of = r.panorama.part(of)
	}
	r.writers.part(done, of)
}

// expectedAhead is how many pictures the renderer knows of before they are drawn.
const expectedAhead = 60

// expect tells the renderer of a picture that will be drawn.
func (r *rendering) expect(c scene.Camera) {
	if r.panorama == nil {
		r.renderer.Expect(c)
		return
	}
	for _, face := range r.panorama.cameras([]scene.Camera{c}) {
		r.renderer.Expect(face)
	}
}

// draw draws the shots and has them written as they come.
func (r *rendering) draw(ctx context.Context, todo []int) error {
	expected, ahead := 0, 1 // nothing is read beside what the first picture waits for
	for at, i := range todo {
		p, err := r.writers.take(ctx, r.renderer.Next)
		if err != nil {
			return err
		}
		for ; expected < min(at+ahead, len(todo)); expected++ {
			r.expect(r.shots[todo[expected]].camera)
		}
		ahead = expectedAhead
		if r.panorama != nil {
			if err := r.panorama.draw(r.renderer, r.shots[i].camera, p); err != nil {
				return err
			}
			if r.kind.Bytes() {
				p.Pix = p.RGBA(r.o.Config.Background, false)
			}
			r.write(i, p)
			continue
		}
		if err := r.renderer.Add(r.shots[i].camera, p, func() { r.write(i, p) }); err != nil {
			return err
		}
	}
	return r.renderer.Drain()
}

// write has shot i written as files and to the video, which takes its pictures in their order.
func (r *rendering) write(i int, p *picture.Picture) {
	if r.first.IsZero() {
		r.first = time.Now()
	}
	before, after := r.turn, make(chan struct{})
	r.turn = after
	r.writers.write(p, func(p *picture.Picture) error {
		defer func() {
			<-before
			close(after)
		}()
		var err error
		if r.o.Out != "" && r.o.Format != FormatNone && !r.kept[i] {
			err = r.writeFiles(&r.shots[i], p)
		}
		if r.video == nil || err != nil {
			return err
		}
		rgba := p.RGBA(r.o.Config.Background, r.kind.Alpha)
		<-before
		return r.video.write(rgba)
	})
}

// writeFiles writes a picture, and before it what goes with it: where the picture is, all is.
func (r *rendering) writeFiles(s *shot, p *picture.Picture) error {
	for i, z := range p.Depth {
		p.Depth[i] = float32(float64(z) / r.unit)
	}
	file := filepath.Join(r.o.Out, s.name) + r.suffix()
	if r.o.single != "" {
		file = r.o.single
	}
	for _, other := range r.o.beside(file) {
		write := func(path string) error { return picture.WriteDepth(path, p.Depth, p.Width, p.Height) }
		if strings.HasSuffix(other, normalSuffix) {
			write = func(path string) error { return picture.WriteNormals(path, p.Normals(r.rays(s))) }
		}
		if err := r.o.drawing.write(other, write); err != nil {
			return err
		}
	}
	if !r.o.Depth {
		p.Depth = p.Depth[:0] // they were drawn for normals
	}
	return r.o.drawing.write(file, func(path string) error { return picture.Write(path, p, r.kind) })
}

// rays are those of a shot's picture.
func (r *rendering) rays(s *shot) picture.Rays {
	if r.panorama != nil {
		return picture.PanoramaRays(r.panorama.width, r.panorama.height)
	}
	return picture.RaysOf(s.camera)
}

// What the names of files of depths and normals end with.
const (
	depthSuffix  = ".depth.npy"
	normalSuffix = ".normal.png"
)

// suffix ends the names of the pictures.
func (r *rendering) suffix() string {
	if r.kind.Format == picture.FormatPNG16 {
		return output.PictureSuffix
	}
	return "." + r.kind.Format
}
