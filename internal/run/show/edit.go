package show

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/edit"
	"vksplat/internal/run/frames"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
	"vksplat/view"
)

// editor is a model that browsers change. Its operations have their turn with the frames.
type editor struct {
	*streamed
	console *cli.Console
	path    string // of the model
	folder  string // of exports
	at      placed
	origin  [3]float64
	photos  []scene.Camera // in the frame of the file, for exports
	heldOut []int

	// For who has the turn.
	edit   *edit.State
	means  []float32 // in the frame of drawing
	logits []float32 // opacities of the file
	drawn  []float32 // those that are drawn

	kept atomic.Bool // files hold, or are about to hold, the operations in force

	mu      sync.Mutex
	state   view.EditState
	change  chan struct{}     // closed and replaced when state changes
	files   map[string]string // that were exported, by name
	writing sync.WaitGroup
	ctx     context.Context // of what is written
	cancel  context.CancelFunc
}

func newEditor(console *cli.Console, o *Options, s *streamed, at placed, means []float32, drawn *scene.Splats,
	origin [3]float64) *editor {
	e := &editor{streamed: s, console: console, path: o.Path, folder: o.ExportTo, at: at, origin: origin,
		edit: edit.New(means), means: drawn.Means, logits: drawn.LogitOpacities,
		drawn: slices.Clone(drawn.LogitOpacities), change: make(chan struct{}), files: map[string]string{}}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.tell(true)
	return e
}

// resume carries out the operations of a file of edits.
func (e *editor) resume(path string) error {
	document, err := edit.Read(path)
	if err != nil {
		return err
	}
	if err := e.edit.Resume(document); err != nil {
		return err
	}
	for i := range e.drawn {
		if e.edit.Gone(i) {
			e.drawn[i] = pipeline.HiddenLogit
		}
	}
	e.kept.Store(true)
	e.tell(true)
	return e.renderer.SetOpacities(e.drawn)
}

// setCameras keeps the photos' cameras for exports; capture is in the frame of drawing.
func (e *editor) setCameras(capture *scene.Capture, origin [3]float64) {
	for i, c := range capture.Cameras {
		e.photos = append(e.photos, capture.Frame.ToCapture(c, origin))
		if capture.HeldOut[c.PhotoName()] {
			e.heldOut = append(e.heldOut, i)
		}
	}
}

// frame is how that of drawing lies to the file's.
func (e *editor) frame() view.EditFrame {
	f := view.EditFrame{Center: e.at.frame.Center, Scale: e.at.frame.Scale}
	for k, x := range e.origin {
		f.Center[k] -= x
	}
	return f
}

// editFormats are those that exports have.
func editFormats() (list []view.EditFormat) {
	for _, f := range splatfile.Formats() {
		if f.Write != nil {
			list = append(list, view.EditFormat{Name: f.Name, Ending: f.Extensions[0]})
		}
	}
	slices.SortStableFunc(list, func(a, b view.EditFormat) int { return len(a.Ending) - len(b.Ending) })
	return list
}

// checkEdit chooses the folder of exports, which is none that a run keeps its models in.
func (o *Options) checkEdit() error {
	o.Edit = o.Edit || o.Edits != ""
	switch {
	case !o.Edit && o.ExportTo != "":
		return fault.Usagef("add "+fault.Setting("edit")+", or leave it out", "%s",
			cli.NoEffect("export-to", fault.Setting("edit")))
	case !o.Edit:
		return nil
	case o.Given("stream") && !o.Stream:
		return fault.Usagef("leave out one of them", "%s: this machine draws what is edited",
			fault.Named("edit", "stream"))
	}
	if o.ExportTo == "" {
		o.ExportTo = "."
	}
	o.ExportTo = output.Absolute(o.ExportTo)
	if err := fault.Dangling(o.ExportTo); err != nil {
		return err
	}
	if !output.IsFolder(o.ExportTo) {
		return fault.Usagef("name an existing folder", "%s: there is no folder %s", fault.Named("export-to"),
			o.ExportTo)
	}
	run := output.FolderOf(output.Resolved(o.Path))
	models := output.Resolved(filepath.Join(run, filepath.Dir(output.ModelFolder)))
	if run != "" && output.Within(output.Resolved(o.ExportTo), models) {
		return fault.Usagef("name another folder: "+fault.Setting("export-to")+" DIR",
			"%s: %s holds the run's own models", fault.Named("export-to"), o.ExportTo)
	}
	return nil
}

// kept is how many bytes of RAM an editor of n splats keeps; without one, 0.
func (o *Options) kept(n int) int64 {
	if !o.Edit {
		return 0
	}
	return edit.SplatBytes * int64(n)
}

// Edits implements view.Edited, as EditsChange, Edit, Export and Exported do.
func (e *editor) Edits() view.EditState {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

func (e *editor) EditsChange() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.change
}

// tell takes in what edit says, by who has the turn; with turned up is another.
func (e *editor) tell(turned bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.state
	s.Splats, s.Of = e.edit.Kept(), e.edit.N()
	s.Done, s.Undone = e.edit.Steps()
	if turned {
		up := e.edit.Up()
		s.Up, s.Chosen = e.at.up, up != nil
		s.Axes = e.edit.Upright().R
		if up != nil {
			s.Up = [3]float64{-s.Axes[3], -s.Axes[4], -s.Axes[5]} // what becomes -y
		}
		s.Box = e.box()
	}
	s.Name = e.freeName()
	e.changed()
}

// box is around what the photos stand around, without the sky; of drawing, their distance from the middle is 1. Where
// that is hardly anything, it is around most of the model.
func (e *editor) box() [6]float64 {
	box, ok := e.edit.Bounds(0.005, func(i int) bool {
		x, y, z := e.means[3*i], e.means[3*i+1], e.means[3*i+2]
		return x*x+y*y+z*z < 1
	})
	if !ok {
		box, _ = e.edit.Bounds(0.02, func(int) bool { return true })
	}
	return box
}

// changed notifies all browsers. e.mu is held.
func (e *editor) changed() {
	e.state.Version++
	close(e.change)
	e.change = make(chan struct{})
}

func (e *editor) Edit(ctx context.Context, q *view.EditQuery) error {
	done, err := e.take(ctx)
	if err != nil {
		return err
	}
	defer done()
	up := e.edit.Up()
	var hidden, shown []uint32
	switch q.Do {
	case view.EditUndo:
		shown, _ = e.edit.Undo()
	case view.EditRedo:
		hidden, _ = e.edit.Redo()
	case view.EditReset:
		for back, ok := e.edit.Undo(); ok; back, ok = e.edit.Undo() {
			shown = append(shown, back...)
		}
	default:
		op, err := e.operation(q)
		if err != nil {
			return err
		}
		if hidden, err = e.edit.Do(op); err != nil {
			return err
		}
	}
	for _, id := range hidden {
		e.drawn[id] = pipeline.HiddenLogit
	}
	for _, id := range shown {
		e.drawn[id] = e.logits[id]
	}
	e.kept.Store(false)
	if len(hidden)+len(shown) > 0 {
		err = e.renderer.SetOpacities(e.drawn)
	}
	e.tell(e.edit.Up() != up)
	return err
}

// operation is the operation of a query.
func (e *editor) operation(q *view.EditQuery) (op edit.Operation, err error) {
	switch q.Do {
	case view.EditCrop:
		op.Crop = &edit.Crop{Box: q.Box, Turn: q.Turn, Keep: edit.Outside}
		if q.Inside {
			op.Crop.Keep = edit.Inside
		}
	case view.EditBrush:
		c := e.picture(&q.View)
		var surface edit.Surface
		if !q.Through {
			if surface, err = e.show(&c, pipeline.LookDepth); err != nil {
				return op, err
			}
		}
		ids := e.edit.Strike(&edit.Stroke{Path: q.Path, Radius: q.Radius}, &c, e.means, surface)
		if len(ids) == 0 {
			return op, edit.ErrNothing
		}
		op.Remove = edit.Runs(ids)
	default:
		up, err := e.up(q)
		return edit.Operation{Up: &up}, err
	}
	return op, nil
}

// up is the up direction that a query means. The frames of drawing and of the file have the same axes.
func (e *editor) up(q *view.EditQuery) (up [3]float64, err error) {
	switch {
	case q.Do == view.EditFloor:
		c := e.picture(&q.View)
		surface, err := e.show(&c, pipeline.LookDepth)
		if err != nil {
			return up, err
		}
		up, ok := edit.Floor([3][2]float64(q.Path), &c, surface)
		if !ok {
			return up, errors.New("mark three places on a surface, not in a line")
		}
		return up, nil
	case q.Up == view.UpView:
		c := frames.Camera(e.cameras, &q.View)
		return [3]float64{-c.R[3], -c.R[4], -c.R[5]}, nil
	case q.Up == view.UpPhotos:
		if len(e.cameras) == 0 {
			return up, errors.New("no photos to derive up from")
		}
		return scene.MeanUp(e.cameras)
	}
	return view.Axes[q.Up], nil
}

// mostSeen is how large a picture is by which the brush sees, px.
const mostSeen = 800

// picture is the camera of a query's picture, as large as the brush needs it.
func (e *editor) picture(q *view.FrameQuery) scene.Camera {
	small := *q
	if f := float64(mostSeen) / float64(max(q.Width, q.Height)); f < 1 {
		small.Width, small.Height = max(1, int(f*float64(q.Width))), max(1, int(f*float64(q.Height)))
	}
	return frames.Camera(e.cameras, &small)
}

// freeName is the name of an export that none has yet.
func (e *editor) freeName() string {
	name := filepath.Base(e.path)
	if run := output.FolderOf(output.Absolute(e.path)); run != "" {
		name = filepath.Base(run)
	} else if f := splatfile.ByName(name); f != nil {
		for _, ending := range f.Extensions {
			if stem, is := cutSuffixFold(name, ending); is {
				name = stem
				break
			}
		}
	}
	name = name[:min(len(name), wording.MaxName-len("__edited_999"))] // PlainName may put one before it
	name = wording.PlainName(strings.ToValidUTF8(name, "_") + "_edited")
	for i := 1; ; i++ {
		numbered := name
		if i > 1 {
			numbered = fmt.Sprintf("%s_%d", name, i)
		}
		pattern := filepath.Join(output.EscapeGlob(e.folder), output.EscapeGlob(numbered)+".*")
		if list, err := filepath.Glob(pattern); err != nil || len(list) == 0 {
			return numbered
		}
	}
}

func cutSuffixFold(s, ending string) (string, bool) {
	if n := len(s) - len(ending); n > 0 && strings.EqualFold(s[n:], ending) {
		return s[:n], true
	}
	return s, false
}

func (e *editor) Export(q *view.ExportQuery) error {
	if err := output.CheckName("export", q.Name); err != nil {
		return err
	}
	formats := splatfile.Formats()
	i := slices.IndexFunc(formats, func(f *splatfile.Format) bool { return f.Name == q.Format && f.Write != nil })
	if i < 0 {
		return fmt.Errorf("export: there is no format %.20q", q.Format)
	}
	done, err := e.take(e.ctx)
	if err != nil {
		return err
	}
	defer done()
	x := e.edit.NewExport()
	x.From, x.Format, x.Generator = e.path, formats[i], "vksplat "+cli.Version()
	x.Cameras, x.HeldOut = e.photos, e.heldOut
	stem, _ := cutSuffixFold(q.Name, x.Format.Extensions[0])
	x.To = filepath.Join(e.folder, stem+x.Format.Extensions[0])
	if err := x.Check(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state.Export.State == view.SaveWriting {
		return errors.New("export: another export is in progress")
	}
	e.kept.Store(true)
	e.state.Export = view.Save{State: view.SaveWriting, Text: filepath.Base(x.To)}
	e.changed()
	e.writing.Go(func() { e.write(x) })
	return nil
}

func (e *editor) Exported(name string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.files[name]
}

// write writes an export and says how that went.
func (e *editor) write(x *edit.Export) {
	splats, lost, err := x.Write(e.ctx)
	if errors.Is(err, context.Canceled) {
		err = errOver
	}
	save := view.Save{State: view.SaveDone}
	if err != nil {
		save = view.Save{State: view.SaveFailed, Text: err.Error()}
		e.kept.Store(false)
	} else {
		save.Text = fmt.Sprintf("%s: %s", x.To, cli.Count(splats, "splat"))
		if bytes, err := splatfile.Size(x.To); err == nil {
			save.Text += ", " + pipeline.BytesText(bytes)
		}
		e.console.Printf("export: %s\n", save.Text)
		for _, text := range lost {
			e.console.Warn(x.To + " is lossy: " + text)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state.Export, e.state.Name = save, e.freeName()
	if err == nil {
		e.state.File = filepath.Base(x.To)
		e.files[e.state.File] = x.To
	}
	e.changed()
}

// close ends what is written, and what is drawn. Operations that no export holds are kept as a file of edits.
func (e *editor) close() error {
	e.cancel()
	err := e.streamed.close() // from here on no frame is drawn, and no export begins
	e.writing.Wait()
	if done, _ := e.edit.Steps(); done > 0 && !e.kept.Load() {
		path := filepath.Join(e.folder, e.freeName()+edit.FileSuffix)
		if failed := e.edit.Document().Write(path); failed != nil {
			return errors.Join(err, failed)
		}
		e.console.Note("edits that were not exported are saved in: " + fault.Command("view "+cli.Quoted(e.path)+" "+
			cli.Flag("edits", cli.Quoted(path))+" goes on"))
	}
	return err
}
