package render

import (
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/run/models"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/detail"
	"vksplat/scene/splatfile"
)

type subject struct {
	splats *scene.Splats // all, or of a streamed model the corners of its parts
	info   splatfile.Info
	parts  *detail.Model // a streamed model; nil: it is in memory
	most   int           // of its splats that a picture shows
	opened time.Time

	garbage int // the percentage that was allowed before partsGarbage; 0: it still is
}

// openSubject reads a model or, of a streamed one, what is where in it.
func openSubject(console *cli.Console, file string) (m *subject, err error) {
	m = &subject{opened: time.Now()}
	if !splatfile.IsStreamed(file) {
		m.splats, m.info, err = models.Open(console, file)
		return m, err
	}
	if m.parts, err = detail.Open(file); err != nil {
		return m, err
	}
	m.splats, m.info = m.parts.Corners(), m.parts.Info
	for _, n := range m.info.Notes {
		console.Warn(file + ": " + n)
	}
	return m, nil
}

func (m *subject) close() error {
	if m.garbage != 0 {
		debug.SetGCPercent(m.garbage)
	}
	if m.parts == nil {
		return nil
	}
	return m.parts.Close()
}

// settle decides whether a streamed model is drawn in parts: one whose finest level a picture may show whole is read
// into memory like any other.
func (m *subject) settle(console *cli.Console, o *Options, d *pipeline.Device, cams []scene.Camera,
	config pipeline.RenderConfig, frame scene.Frame) (err error) {
	if m.parts == nil {
		if o.MaxSplats > 0 {
			console.Warn(cli.NoEffect("max-splats", "a streamed model"))
		}
		return nil
	}
	if m.most = o.MaxSplats; m.most == 0 {
		m.most = d.MostShown(m.parts, cams, config)
	}
	if m.info.N > m.most {
		m.parts.Use(frame, models.OriginOf(&m.info), pipeline.PageSplats)
		if os.Getenv("GOGC") == "" {
			m.garbage = debug.SetGCPercent(partsGarbage)
		}
		return nil
	}
	parts := m.parts
	m.parts = nil
	if err := parts.Close(); err != nil {
		return err
	}
	if m.splats, m.info, err = models.Open(console, o.File); err == nil {
		m.splats = m.splats.FromCapture(frame, models.OriginOf(&m.info))
	}
	return err
}

// partsGarbage is how much garbage there may be, in percent of what is in use, while parts are drawn. These are large
// and have no pointers: to collect garbage four times as often as is usual takes next to no time, and otherwise half of
// the heap is parts that were drawn long ago.
const partsGarbage = 25

func (m *subject) renderer(d *pipeline.Device, cams []scene.Camera, config pipeline.RenderConfig) (*pipeline.Renderer,
	error) {
	if m.parts == nil {
		return pipeline.NewRenderer(d, m.splats, cams, config)
	}
	return pipeline.NewPartsRenderer(d, m.parts, m.most, cams, config)
}

// report says what was drawn of a streamed model, what it took, and when the first picture was there.
func (m *subject) report(console *cli.Console, r *rendering, d *pipeline.Device) {
	if m.parts == nil {
		return
	}
	least, most := r.renderer.Shown()
	console.Printf("%d to %s drawn; device memory %s at most; the first picture %.1f s after the model was opened\n",
		least, cli.Count(most, "splat"), pipeline.BytesText(d.Peak()), r.first.Sub(m.opened).Seconds())
}

func (m *subject) what() string {
	if m.parts == nil {
		return cli.Count(m.splats.N, "splat")
	}
	return fmt.Sprintf("%s in levels of detail, %d at most a picture", cli.Count(m.info.N, "splat"), m.most)
}
