package info

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/wording"
	"vksplat/pipeline"
	"vksplat/pipeline/checkpoint"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/pointcloud"
	"vksplat/scene/safetensors"
	"vksplat/scene/splatfile"
)

// facts are labelled lines for people.
type facts [][2]string

func (f *facts) add(label, format string, args ...any) {
	*f = append(*f, [2]string{label, wording.Printable(fmt.Sprintf(format, args...))})
}

func (f *facts) addNotes(notes []string) {
	for _, n := range notes {
		f.add("note", "%.200s", n)
	}
}

// Damage is an error where a fact says that something is damaged.
func (f facts) Damage(path string) error {
	for _, line := range f {
		if line[0] == "DAMAGED" {
			return &fault.Error{Op: "check file", Path: path, Err: errors.New(line[1]),
				Hint: "use an earlier or another copy"}
		}
	}
	return nil
}

func PrintFacts(console *cli.Console, list facts) error {
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
	for _, f := range list {
		_, _ = fmt.Fprintf(w, "%s\t%s\n", f[0], f[1])
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print info: %w", err)
	}
	return nil
}

// Describe looks at what is there, whatever its name is. Unpack wants the splats of packed models, too.
func Describe(path string, unpack bool) (value any, text facts, err error) {
	if output.IsFolder(path) {
		if output.IsFolder(filepath.Join(path, output.CheckpointFolder)) ||
			output.IsFolder(filepath.Join(path, "point_cloud")) ||
			output.IsFile(filepath.Join(path, output.MetricsFile)) ||
			output.IsFile(filepath.Join(path, output.LockName)) {
			return describeRun(path)
		}
		if model, err := splatfile.Find(path); err == nil { // of SOG
			return Describe(model, unpack)
		}
		value, text, err := describeCapture(path)
		return value, text, plans.OfPlan(path, err)
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, nil, &fault.Error{Op: "read", Path: path, Err: fault.Pathless(err),
			Hint: "check the spelling of the path"}
	}
	model, err := splatfile.Open(path)
	switch {
	case err == nil && model.Info().Format != "checkpoint":
		value, text, err = describeModel(path, model, unpack)
		return value, text, errors.Join(err, model.Close())
	case err == nil:
		if err := model.Close(); err != nil {
			return nil, nil, err
		}
	case st.Mode().IsRegular() && (beginsWith(path, "ply") || beginsWith(path, "LASF")):
		return describePoints(path, st.Size(), err)
	case strings.EqualFold(filepath.Ext(path), ".json") && errors.Is(err, splatfile.ErrUnknown):
		return describeCapture(path)
	}
	value, text, tensors := describeTensors(path)
	if errors.Is(tensors, safetensors.ErrNotSafetensors) && err != nil {
		return nil, nil, unknownFile(path, err)
	}
	return value, text, tensors
}

// unknownFile is the error of a file that is no model for the reason why, and nothing else that info knows.
func unknownFile(path string, why error) error {
	if !errors.Is(why, splatfile.ErrUnknown) {
		return why
	}
	if kind := photo.ForeignKindOf(path); kind != nil && kind.Video {
		_, err := load.Capture(path, scene.LoadOptions{}) // which says how to find its cameras
		return err
	}
	return &fault.Error{Op: "describe", Path: path, Err: errors.New("not a kind of file that info reads"),
		Hint: "name a file of splats, a PLY or LAS file of points, a checkpoint or another safetensors file, the " +
			"folder or the JSON file of a capture, or the folder of a run"}
}

// beginsWith reports whether a file begins with the bytes of prefix.
func beginsWith(path, prefix string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	have := make([]byte, len(prefix))
	_, err = io.ReadFull(f, have)
	return err == nil && bytes.Equal(have, []byte(prefix))
}

// checkpointInfo is a checkpoint in --json.
type checkpointInfo struct {
	Kind    string                   `json:"kind"`
	Path    string                   `json:"path"`
	Bytes   int64                    `json:"bytes"`
	Whole   bool                     `json:"whole"` // the hash is the recorded one
	Header  checkpoint.Header        `json:"header"`
	Tensors []safetensors.TensorInfo `json:"tensors"`
}

// describeTensors describes a checkpoint, or any other file of its layout.
func describeTensors(path string) (any, facts, error) {
	c, err := checkpoint.Open(path)
	if errors.Is(err, splatfile.ErrNotCheckpoint) {
		return describeForeign(path)
	}
	if err != nil {
		return nil, nil, err
	}
	whole := c.Verify()
	info := checkpointInfo{"checkpoint", path, c.Size(), whole == nil, c.Header, c.Tensors()}
	if err := c.Close(); err != nil {
		return nil, nil, err
	}
	h := &info.Header
	var f facts
	f.add("checkpoint", "%s, %s, written by vksplat %s", path, pipeline.BytesText(info.Bytes), h.Version)
	if h.Step < h.Config.Iterations {
		f.add("step", "%d of %d, next: %s of step %d, in epoch %d", h.Step, h.Config.Iterations, h.Next.Kind,
			h.Next.Step+1, h.Order.Epoch+1)
	} else {
		f.add("step", "%d, all of them", h.Step)
	}
	f.add("splats", "%d of at most %d, SH degree %d", h.Splats, h.SplatCeiling, h.SHDegree)
	f.add("strategy", "%s, seed %d", h.Config.Strategy, h.Seed)
	f.add("capture", "%s of %s, %d held out, %s, fingerprint %.12s", cli.Count(h.Capture.Photos, "photo"),
		h.Capture.Resolution, h.Capture.HeldOut,
		cli.Count(h.Capture.Points, "point"), h.Capture.Fingerprint)
	f.add("frame", "center %.6g %.6g %.6g, scale %.6g, scene scale %.6g", h.Frame.Center[0], h.Frame.Center[1],
		h.Frame.Center[2], h.Frame.Scale, h.Frame.SceneScale)
	f.add("device", "%s", h.Device)
	for _, d := range h.Deviations {
		f.add("other bytes possible", "from step %d on: %s", d.Step, d.Reason)
	}
	f.add("precision", "%s", h.Config.Precision)
	f.add("tensors", "%s, raw; log_scales are logarithms, logit_opacities go through a sigmoid, quats are not "+
		"normalised", cli.Count(len(info.Tensors), "tensor"))
	if whole != nil {
		f.add("DAMAGED", "the hash is not the recorded one")
		return info, f, nil
	}
	f.add("hash", "matches")
	return info, f, nil
}

// tensorsInfo is a file of tensors that is no checkpoint, in --json.
type tensorsInfo struct {
	Kind     string                   `json:"kind"`
	Path     string                   `json:"path"`
	Bytes    int64                    `json:"bytes"`
	Metadata map[string]string        `json:"metadata"`
	Tensors  []safetensors.TensorInfo `json:"tensors"`
}

func describeForeign(path string) (any, facts, error) {
	s, err := safetensors.Open(path)
	if err != nil {
		return nil, nil, err
	}
	info := tensorsInfo{"tensors", path, s.Size(), s.Metadata, s.Tensors}
	var f facts
	f.add("safetensors", "%s, %s, no checkpoint of vksplat", path, pipeline.BytesText(info.Bytes))
	for _, t := range info.Tensors {
		f.add("  "+fmt.Sprintf("%.60q", t.Name), "%s %v", t.DType, t.Shape)
	}
	return info, f, s.Close()
}

// modelInfo is a file of splats or points in --json.
type modelInfo struct {
	Kind        string      `json:"kind"` // splats or points
	Path        string      `json:"path"`
	Bytes       int64       `json:"bytes"`
	Count       int         `json:"count"`
	SHDegree    *int        `json:"sh_degree,omitempty"`
	File        string      `json:"file_format,omitempty"` // as convert's --to calls it
	Format      string      `json:"format,omitempty"`      // encoding of the numbers, or version
	Comments    []string    `json:"comments,omitempty"`
	Notes       []string    `json:"notes,omitempty"`      // what the file holds that splats have no place for
	NonFinite   int         `json:"non_finite,omitempty"` // splats with a NaN or an infinite number
	Antialiased bool        `json:"antialiased,omitempty"`
	Vertical    string      `json:"vertical_axis,omitempty"`
	Origin      *[3]float64 `json:"origin,omitempty"`
	Min         *[3]float64 `json:"min,omitempty"` // of the finite positions, where they were read
	Max         *[3]float64 `json:"max,omitempty"`
}

// describeModel describes a file of splats, reading it piece by piece. The splats of packed models are read where
// unpack says so.
func describeModel(path string, model splatfile.Source, unpack bool) (any, facts, error) {
	size, err := splatfile.Size(path)
	if err != nil {
		return nil, nil, err
	}
	from := model.Info()
	info := modelInfo{Kind: "splats", Path: path, Bytes: size, Count: from.N, SHDegree: &from.Degree, File: from.Format,
		Format: from.Encoding, Comments: from.Comments, Notes: from.Notes,
		Antialiased: from.Meta.Antialiased, Vertical: from.Meta.Vertical, Origin: from.Meta.Origin}
	var f facts
	f.add("splats", "%s, %s: %s of SH degree %d", path, pipeline.BytesText(size), cli.Count(from.N, "splat"),
		from.Degree)
	f.add("format", "%s", strings.TrimSpace(from.Format+" "+from.Encoding))
	f.add("antialiased", "%s",
		map[bool]string{true: "yes", false: "no, or the file does not say"}[from.Meta.Antialiased])
	if b := from.Meta.Background; b != nil {
		f.add("trained on", "background %g,%g,%g, near plane %g", b[0], b[1], b[2],
			cmp.Or(from.Meta.Near, ply.DefaultNear))
	}
	if from.Meta.Exposure {
		f.add("exposure", "learnt for each training photo, and not in the file")
	}
	for _, c := range from.Comments {
		f.add("comment", "%.200q", c)
	}
	f.addNotes(from.Notes)
	if from.Packed && !unpack {
		f.add("bounds", "unknown, because the splats are packed (%s reads them)", fault.Setting("bounds"))
		return info, f, nil
	}
	var box box
	err = model.Read(func(piece *scene.Splats) error {
		info.NonFinite += piece.NonFinite()
		for i := range piece.N {
			box.add([3]float64{float64(piece.Means[3*i]), float64(piece.Means[3*i+1]), float64(piece.Means[3*i+2])})
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	info.Min, info.Max = &box.lo, &box.hi
	if info.NonFinite > 0 {
		f.add("DAMAGED", "%s with NaN or infinite numbers", cli.Count(info.NonFinite, "splat"))
	}
	box.tell(&f)
	return info, f, nil
}

// describePoints describes a PLY or LAS file that holds points where its splats cannot be read for the reason why.
func describePoints(path string, size int64, why error) (any, facts, error) {
	points, notes, err := pointcloud.Read(path)
	switch {
	case err != nil && beginsWith(path, "LASF"):
		return nil, nil, err
	case err != nil:
		return nil, nil, why
	}
	info := modelInfo{Kind: "points", Path: path, Bytes: size, Count: len(points), Notes: notes}
	var box box
	for _, p := range points {
		box.add(p.Pos)
	}
	info.Min, info.Max = &box.lo, &box.hi
	var f facts
	f.add("points", "%s, %s: %s", path, pipeline.BytesText(size), cli.Count(len(points), "point"))
	f.addNotes(notes)
	box.tell(&f)
	return info, f, nil
}

// box holds all finite positions that were added.
type box struct {
	lo, hi [3]float64
	some   bool
}

func (b *box) add(p [3]float64) {
	for _, x := range p {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return
		}
	}
	if !b.some {
		b.lo, b.hi, b.some = p, p, true
	}
	for k, x := range p {
		b.lo[k], b.hi[k] = min(b.lo[k], x)+0, max(b.hi[k], x)+0 // which makes 0 of -0
	}
}

func (b *box) tell(f *facts) {
	f.add("bounds", "%.6g %.6g %.6g to %.6g %.6g %.6g", b.lo[0], b.lo[1], b.lo[2], b.hi[0], b.hi[1], b.hi[2])
}

// captureInfo is a capture in --json.
type captureInfo struct {
	Kind       string   `json:"kind"`
	Path       string   `json:"path"`
	Model      string   `json:"model"`
	Images     string   `json:"images"`
	Photos     int      `json:"photos"`
	Resolution string   `json:"resolution"`
	Points     int      `json:"points"`
	Warnings   []string `json:"warnings,omitempty"`
}

func describeCapture(path string) (any, facts, error) {
	c, err := load.Capture(path, scene.LoadOptions{Model: scene.AnyModel})
	if err != nil {
		return nil, nil, captured.Unread(path, err)
	}
	info := captureInfo{Kind: "capture", Path: path, Model: c.Model, Images: c.Images, Photos: len(c.Cameras),
		Resolution: captured.Resolution(c.Cameras), Points: len(c.Points)}
	var f facts
	f.add("capture", "%s", path)
	f.add("model", "%s", c.Model)
	f.add("photos", "%s of %s in %s", cli.Count(info.Photos, "photo"), info.Resolution, c.Images)
	f.add("points", "%d", info.Points)
	for _, w := range c.Warnings {
		info.Warnings = append(info.Warnings, w.String())
		kind := cli.KindWarning
		if inspect.Note(w) {
			kind = cli.KindNote
		}
		f.add(kind+" of train", "%s", w) // which has the flags that it may name
	}
	return info, f, nil
}

// runInfo is the folder of a run in --json.
type runInfo struct {
	Kind        string   `json:"kind"`
	Path        string   `json:"path"`
	Checkpoints []string `json:"checkpoints"`
	Models      []string `json:"models"`
	Newest      any      `json:"newest_checkpoint,omitempty"`
	// folder of a run that replaces this one once it has a checkpoint
	Next string `json:"next,omitempty"`
}

func describeRun(path string) (any, facts, error) {
	list, err := output.ListCheckpoints(filepath.Join(path, output.CheckpointFolder))
	if err != nil {
		return nil, nil, err
	}
	info := runInfo{Kind: "run", Path: path, Checkpoints: []string{}, Models: output.FormerModels(path)}
	var f facts
	f.add("run", "%s: %s, %s", path, cli.Count(len(list), "checkpoint"), cli.Count(len(info.Models), "model"))
	for _, m := range info.Models {
		f.add("model", "%s", m)
	}
	if text := output.NextText(path); text != "" {
		info.Next = filepath.Join(path, output.NextFolder)
		f.add("next run", "%s", text)
	}
	for _, c := range list {
		info.Checkpoints = append(info.Checkpoints, c.Path)
	}
	if len(list) == 0 {
		why := "the run keeps none, or ended before the first"
		if len(info.Models) == 0 {
			why = "the run has just started, or ended before the first; " + lastMetrics(path)
		}
		f.add("checkpoint", "none: %s", why)
		return info, f, nil
	}
	newest, more, err := describeTensors(list[len(list)-1].Path)
	if err != nil {
		return nil, nil, err
	}
	info.Newest = newest
	return info, append(f, more...), nil
}

// lastMetrics says how far metrics.jsonl of a run's folder goes.
func lastMetrics(path string) string {
	f, err := os.Open(filepath.Join(path, output.MetricsFile))
	if err != nil {
		return "no step is recorded"
	}
	defer f.Close() // only read
	lines := meter.ReadSteps(f, 1)
	if len(lines) == 0 {
		return "no step is recorded"
	}
	last := lines[len(lines)-1]
	return fmt.Sprintf("step %d of %d is recorded", last.Step, last.Total)
}
