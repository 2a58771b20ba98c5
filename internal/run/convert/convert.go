package convert

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/edit"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
	"vksplat/scene/tiles"
)

// Heap is how much memory Go takes before it collects garbage: models of tens of millions of splats are
// converted in less than 2 GB.
const Heap = 3 << 29

// Options is everything that convert is asked for.
type Options struct {
	In  []string
	Out string

	To      string
	Merge   bool
	Degree  int // -1: the model's own
	Pad     int // -1: likewise
	Box     string
	Sphere  string
	Opacity float64
	Most    int
	// a number of splats, or per cent of them; "": none is merged
	Decimate string
	Outlier  float64
	Edits    string // file of an edit of the viewer
	Move     string
	Orient   string
	Cameras  string
	Replace  bool   // OUT
	Strict   bool   // splats whose numbers are not finite are an error
	Place    string // of 3D Tiles: latitude, longitude, height and perhaps heading
	Write    splatfile.WriteOptions
}

// Name is the command's.
const Name = "convert"

// FormatNames lists the formats that can be written, or those that cannot.
func FormatNames(written bool) string {
	var names []string
	for _, f := range splatfile.Formats() {
		if (f.Write != nil) == written {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// FormatWords lists the formats that can be written, for completion.
func FormatWords() []string { return strings.Split(FormatNames(true), ", ") }

// format returns what is to be written.
func (o *Options) format() (*splatfile.Format, error) {
	if o.To == "" {
		return writableFormat(o.Out, ", or add "+fault.Setting("to")+" FORMAT")
	}
	for _, f := range splatfile.Formats() {
		if f.Name == o.To && f.Write != nil {
			return f, nil
		}
	}
	return nil, fault.Usagef("formats that can be written: "+FormatNames(true),
		"%s: %q is not a format that vksplat writes", fault.Named("to"), o.To)
}

// writableFormat returns the format that a file's name says. Remedy is what can be done besides giving it another name.
func writableFormat(path, remedy string) (*splatfile.Format, error) {
	if err := refuseFolder(path); err != nil {
		return nil, err
	}
	f := splatfile.ByName(filepath.Base(path))
	known := "formats that can be written: " + FormatNames(true)
	if path == "" {
		return nil, fault.Usagef("name the file as in model.ply; "+known, "no file is named")
	}
	if f == nil {
		return nil, fault.Usagef("name the file as in model.ply"+remedy+"; "+known,
			"cannot tell the format of %s from its name", path)
	}
	if f.Write == nil {
		return nil, fault.Usagef(known, "%s: %s can be read but not written", path, f.Name)
	}
	return f, nil
}

// refuseFolder is the error of a folder where a file is to be written.
func refuseFolder(path string) error {
	if output.IsFolder(path) {
		return fault.Usagef("name the file in it, as in "+filepath.Join(path, "model.ply"), "%s is a folder", path)
	}
	return nil
}

// check reports what makes no sense before anything is read.
func (o *Options) check(f *splatfile.Format) error {
	switch {
	case len(o.In) > 1 && !o.Merge:
		return fault.Usagef("add "+fault.Setting("merge")+
			" to put them together into one, or convert one after the other",
			"%d models to read and one to write", len(o.In))
	case len(o.In) == 1 && o.Merge:
		return fault.Usagef("as in: "+fault.Command("convert --merge a.ply b.ply both.ply"),
			"%s: merging needs two or more models", fault.Named("merge"))
	case o.Decimate != "" && cli.Part(o.Decimate, 100) == 0:
		return fault.Usagef("give a number of splats as in 500000, or a share as in 25%", "%s: %q",
			fault.Named("decimate"), o.Decimate)
	case o.Orient != "" && o.Orient != "up":
		return fault.Usagef("as in: "+fault.Setting("orient")+" up", "%s: %q is not known", fault.Named("orient"),
			o.Orient)
	case o.Cameras != "" && o.Orient == "":
		return fault.Usagef("add "+fault.Setting("orient")+" up",
			"%s gives an up direction, but nothing is to be rotated", fault.Setting("cameras"))
	case o.Edits != "" && o.Merge:
		return fault.Usagef("apply the edits first, and merge the result", "%s: edits apply to one model",
			fault.Named("edits", "merge"))
	case o.Write.Version != 0 && f.Name != "spz":
		return fault.Usagef("leave it out, or name OUT as in model.spz", "%s: the output is %s",
			fault.Named("spz-version"), f.Name)
	case o.Write.Iterations != 0 && f.Name != "sog" && f.Name != splatfile.StreamedFormat:
		return fault.Usagef("leave it out, or name OUT as in model.sog", "%s: the output is %s",
			fault.Named("sog-iterations"), f.Name)
	case o.Write.Levels != 0 && f.Name != splatfile.StreamedFormat:
		return fault.Usagef("leave it out, or name OUT as in city/lod-meta.json", "%s: the output is %s",
			fault.Named("lod"), f.Name)
	case (o.Place != "" || o.Write.PlainTiles) && f.Name != "3d-tiles":
		return fault.Usagef("leave it out, or name OUT as in city/tileset.json", "%s: the output is %s",
			fault.Named("georeference", "uncompressed-tiles"), f.Name)
	case o.Write.TempDir != "" && !output.IsFolder(o.Write.TempDir):
		return fault.Usagef("name an existing folder", "%s: %s is not a folder", fault.Named("temp-dir"),
			o.Write.TempDir)
	}
	return o.checkOut()
}

// checkOut refuses to write over what is read, or where no file can be.
func (o *Options) checkOut() error {
	if err := refuseFolder(o.Out); err != nil {
		return err
	}
	out, err := os.Stat(o.Out)
	if err != nil {
		// it does not exist yet, perhaps others are
		return output.RefuseExisting("", o.Replace, splatfile.Outputs(o.Out)...)
	}
	for _, in := range o.In {
		path, err := splatfile.Find(in)
		if err != nil {
			return err
		}
		if err := output.RefuseSame(o.Out, path); err != nil {
			return err
		}
	}
	if !out.Mode().IsRegular() {
		return fault.Usagef("choose another name for what is written", "%s is not a regular file", o.Out)
	}
	return output.RefuseExisting("", o.Replace, splatfile.Outputs(o.Out)...)
}

// place reads where on Earth the model is; nil for nowhere.
func (o *Options) place() (*tiles.Place, error) {
	if o.Place == "" {
		return nil, nil
	}
	n := 3 + min(1, max(0, strings.Count(o.Place, ",")-2))
	v, err := cli.SomeNumbers(o.Place, n)
	if err != nil || math.Abs(v[0]) > 90 || math.Abs(v[1]) > 180 || math.Abs(v[2]) > 1e7 {
		return nil, fault.Usagef("give degrees north, degrees east and metres above the ellipsoid, then the heading "+
			"of z if it is not 0, as in 46.5197,6.6323,420,90", "%s: %q is not a place", fault.Named("georeference"),
			o.Place)
	}
	p := &tiles.Place{Latitude: v[0], Longitude: v[1], Height: v[2]}
	if n == 4 {
		p.Heading = v[3]
	}
	return p, nil
}

// moves reads how the model is moved.
func (o *Options) moves() (splatfile.Similarity, error) {
	if o.Move == "" {
		return splatfile.Unmoved(), nil
	}
	moves, err := splatfile.ParseTransform(o.Move)
	if err != nil {
		return moves, fault.Usagef("as in \"scale 2 rotate 0,90,0 translate 1,2,3\", or the rows of a matrix",
			"%s: %v", fault.Named("transform"), err)
	}
	return moves, nil
}

// selection reads the flags that say which splats stay.
func (o *Options) selection() (s splatfile.Selection, err error) {
	s = splatfile.Selection{MinOpacity: o.Opacity, Outliers: o.Outlier, MaxSplats: o.Most}
	if o.Box != "" {
		v, err := cli.SomeNumbers(o.Box, 6)
		if err != nil || v[0] > v[3] || v[1] > v[4] || v[2] > v[5] {
			return s, fault.Usagef("give six numbers, the least x, y, z and then the greatest, as in -1,-1,-1,1,1,1",
				"%s: %q is not a box", fault.Named("crop"), o.Box)
		}
		s.Box = (*[6]float64)(v)
	}
	if o.Sphere != "" {
		v, err := cli.SomeNumbers(o.Sphere, 4)
		if err != nil || !(v[3] > 0) {
			return s, fault.Usagef("give four numbers, the centre and a radius above 0, as in 0,0,0,2.5",
				"%s: %q is not a sphere", fault.Named("sphere"), o.Sphere)
		}
		s.Sphere = (*[4]float64)(v)
	}
	return s, nil
}

// Run reads, changes and writes a model.
func Run(console *cli.Console, o *Options) (err error) {
	f, err := o.format()
	if err != nil {
		return err
	}
	if err := o.check(f); err != nil {
		return err
	}
	selection, err := o.selection()
	if err != nil {
		return err
	}
	if o.Write.Place, err = o.place(); err != nil {
		return err
	}
	moves, err := o.moves()
	if err != nil {
		return err
	}
	console.LimitHeap(Heap)
	w := newWatch(console)
	defer w.end()
	model, err := openModels(console, o.In, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	up, err := o.edits(model, &selection)
	if err != nil {
		return err
	}
	if o.Orient != "" {
		if up != nil {
			return fault.Usagef("leave "+fault.Setting("orient")+" out", "%s: the edits say where up is",
				fault.Named("orient"))
		}
		move, err := uprightMove(console, o)
		if err != nil {
			return err
		}
		up = &move
	}
	release, err := output.Claim(filepath.Dir(o.Out), false)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := console.Interruptible(cli.Always("stopping; partial output is removed"))
	defer stop()
	console.OnAbort = func() {
		dropTemporary(o.Out)
		release()
	}
	w.ctx, o.Write.Stop = ctx, ctx.Err
	err = changeModel(console, o, f, model, selection, up, moves)
	if errors.Is(err, context.Canceled) {
		err = fault.ErrInterrupted
	}
	return err
}

// edits carries out an edit of the viewer, if one is named: what it removes goes into the selection. up is what turns
// the model, nil where the edit does not say.
func (o *Options) edits(model splatfile.Source, selection *splatfile.Selection) (up *splatfile.Similarity, err error) {
	if o.Edits == "" {
		return nil, nil
	}
	document, err := edit.Read(o.Edits)
	if err != nil {
		return nil, err
	}
	result, err := document.Replay(model)
	if err != nil {
		return nil, err
	}
	if result.Up != nil {
		move := result.Upright()
		up = &move
	}
	selection.Removed = result.Removed
	return up, nil
}

// changeModel selects and moves the splats of a model and writes it. up is what turns it upright, nil where it stays.
func changeModel(console *cli.Console, o *Options, f *splatfile.Format, model splatfile.Source,
	selection splatfile.Selection, up *splatfile.Similarity, moves splatfile.Similarity) error {
	model, dropped, err := splatfile.Select(model, selection)
	if err != nil {
		return err
	}
	if o.Strict && dropped.Broken > 0 {
		return fault.Data("convert", o.In[0], "make or copy the file again, or leave out "+fault.Setting("strict"),
			"%s: %s", cli.Count(dropped.Broken, "splat"), brokenSplats)
	}
	tellDropped(console, dropped)
	if model.Info().N == 0 {
		return &fault.Error{Op: "convert", Path: o.In[0], Err: errors.New("no splats are left to write"),
			Hint: "the file may be empty or damaged, or the settings leave nothing: see what " +
				fault.Command("info --bounds") + " says about the positions"}
	}
	if n := cli.Part(o.Decimate, model.Info().N); n > 0 && n < model.Info().N {
		merged, err := splatfile.Decimate(model, n, o.Write.FolderFor(o.Out), o.Write.Stop)
		if err != nil {
			return err
		}
		defer func() { _ = merged.Close() }() // what it held is written, or has failed
		model = merged
	}
	if up != nil {
		model = splatfile.Move(model, *up, "y")
	}
	model = splatfile.Move(model, moves, "")
	if o.Degree >= 0 {
		model = splatfile.WithDegree(model, min(o.Degree, model.Info().Degree))
	}
	model = splatfile.WithDegree(model, max(o.Pad, model.Info().Degree))
	o.Write.Generator = "vksplat " + cli.Version()
	if f.Name == splatfile.StreamedFormat {
		trained, err := o.trainedLevels(console, dropped != (splatfile.Dropped{}), up, moves, model.Info().Degree)
		if err != nil {
			return err
		}
		defer func() { _ = trained.Close() }() // only read
		o.Write.Coarser = trained.Parts
	}
	lost, err := f.Write(o.Out, model, o.Write)
	if err != nil {
		return err
	}
	for _, text := range lost {
		console.Warn(o.Out + " is lossy: " + text)
	}
	info, size := model.Info(), ""
	if f.Plain {
		info.Degree = 0
	}
	if bytes, err := splatfile.Size(o.Out); err == nil {
		size = ", " + pipeline.BytesText(bytes)
	}
	console.Printf("model: %s: %s, %s of SH degree %d%s\n", o.Out, f.Name, cli.Count(info.N, "splat"), info.Degree,
		size)
	return nil
}

var brokenSplats = fmt.Sprintf("numbers that are NaN or infinite, a rotation of length zero or a scale beyond e^%d",
	scene.HugeLog)

// tellDropped says what is not written, and why.
func tellDropped(console *cli.Console, d splatfile.Dropped) {
	if d.Broken > 0 {
		console.Warn(fmt.Sprintf("%s left out: %s", cli.Count(d.Broken, "splat"), brokenSplats))
	}
	for _, part := range []struct {
		n   int
		why string
	}{{d.Removed, "removed by the edits"}, {d.Outside, "outside of what is kept"},
		{d.Faint, "below " + fault.Setting("min-opacity")}, {d.Outliers,
			"alone, by " + fault.Setting("prune-outliers")},
		{d.Surplus, "least important, by " + fault.Setting("max-splats")}} {
		if part.n > 0 {
			console.Printf("dropped %s: %s\n", cli.Count(part.n, "splat"), part.why)
		}
	}
}

// openModels opens what is to be read, merged if there are several, and tells what the files hold beside splats.
func openModels(console *cli.Console, in []string, w *watch) (splatfile.Source, error) {
	var opened OpenedModels
	for _, path := range in {
		model, err := splatfile.Open(path)
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		opened.Parts = append(opened.Parts, w.over(model))
		for _, n := range model.Info().Notes {
			console.Warn(path + ": " + n)
		}
	}
	if len(opened.Parts) == 1 {
		return opened.Parts[0], nil
	}
	antialiased := func(m splatfile.Source) bool { return m.Info().Meta.Antialiased }
	if first := antialiased(opened.Parts[0]); slices.ContainsFunc(opened.Parts,
		func(m splatfile.Source) bool { return antialiased(m) != first }) {
		console.Warn("some of the models were trained with " + fault.Setting("antialiased") + " and some were " +
			"not: the result is marked like the first, and the others will look thinner or thicker than they should")
	}
	look := func(m splatfile.Source) string {
		meta := m.Info().Meta
		background := [3]float32{}
		if meta.Background != nil {
			background = *meta.Background
		}
		return fmt.Sprint(background, meta.Near, meta.Exposure)
	}
	if first := look(opened.Parts[0]); slices.ContainsFunc(opened.Parts,
		func(m splatfile.Source) bool { return look(m) != first }) {
		console.Warn("the models were trained with different backgrounds, near planes or exposure: the result " +
			"records those of the first")
	}
	var err error
	if opened.Source, err = splatfile.Merge(opened.Parts); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &opened, nil
}

// OpenedModels is a merged model with the files that it comes from.
type OpenedModels struct {
	splatfile.Source
	Parts []splatfile.Source
}

// Close closes all files.
func (o *OpenedModels) Close() error {
	var errs []error
	for _, m := range o.Parts {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// dropTemporary removes what an aborted write of path leaves.
func dropTemporary(path string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return
	}
	for _, e := range entries {
		if base, _ := fault.TempOf(e.Name()); base == filepath.Base(path) {
			// the process ends here; what stays has a name that says what it is
			_ = os.RemoveAll(filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
}
