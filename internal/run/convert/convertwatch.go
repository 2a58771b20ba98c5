package convert

import (
	"context"
	"fmt"
	"time"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/run/meter"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// watch shows how a conversion goes and ends it when the user wants so.
type watch struct {
	console *cli.Console
	ctx     context.Context
	shown   time.Time // when the last line was due
	pass    int       // how often a file has been read
	read    int       // splats of this pass
	of      int       // so many
}

func newWatch(console *cli.Console) *watch {
	return &watch{console: console, ctx: context.Background(), shown: time.Now()}
}

func (w *watch) end() { w.ctx = context.Background() }

// begin restarts the count.
func (w *watch) begin(n int) { w.pass, w.read, w.of = w.pass+1, 0, n }

// saw counts splats and returns an error once the user wants to stop.
func (w *watch) saw(n int) error {
	w.read += n
	if t := time.Now(); t.Sub(w.shown) >= meter.LinesEvery {
		w.shown = t
		w.console.Printf("reading the model, pass %d: %d of %s\n", w.pass, w.read, cli.Count(w.of, "splat"))
		child.Report(child.Event{Event: meter.EventStep, Text: fmt.Sprintf("pass %d", w.pass), Step: w.read,
			Total: w.of})
	}
	return w.ctx.Err()
}

// over returns model with the watch between it and those who read it.
func (w *watch) over(model splatfile.Source) splatfile.Source {
	plain := watched{model, w}
	if g, ok := model.(splatfile.Gatherer); ok {
		return &watchedRows{plain, g}
	}
	return &plain
}

type watched struct {
	splatfile.Source
	w *watch
}

func (m *watched) Read(put func(piece *scene.Splats) error) error {
	m.w.begin(m.Info().N)
	return m.Source.Read(func(piece *scene.Splats) error {
		if err := m.w.saw(piece.N); err != nil {
			return err
		}
		return put(piece)
	})
}

type watchedRows struct {
	watched
	rows splatfile.Gatherer
}

func (m *watchedRows) Gather(ids []uint32, into *scene.Splats) error {
	if m.w.read >= m.w.of {
		m.w.begin(m.Info().N)
	}
	if err := m.w.saw(len(ids)); err != nil {
		return err
	}
	return m.rows.Gather(ids, into)
}
