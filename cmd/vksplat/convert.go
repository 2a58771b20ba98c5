package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/splatfile"
)

// convertHeap is how much memory Go takes before it collects garbage: models of tens of millions of splats are converted in less than 2 GB.
const convertHeap = 3 << 29

// convertOptions is everything that convert is asked for.
type convertOptions struct {
	in  []string
	out string

	to      string
	merge   bool
	degree  int // -1: the model's own
	pad     int // -1: likewise
	box     string
	sphere  string
	opacity float64
	most    int
	outlier float64
	move    string
	orient  string
	cameras string
	replace bool // OUT
	write   splatfile.WriteOptions
}

// convertName is the command's.
const convertName = "convert"

func convertCommand(a *cli.Console) *cobra.Command {
	o := &convertOptions{degree: -1, pad: -1}
	cmd := &cobra.Command{
		Use:     convertName + " IN... OUT",
		Aliases: []string{"export"},
		Short:   "Convert a model of splats to another format",
		Long: "Convert a model of splats to another format, and choose, move or merge splats on\n" +
			"the way. IN is a file of any format that is known, by its content, or the folder\n" +
			"of a training run, whose latest model is taken. OUT's name says what is written,\n" +
			"or --to does. Formats: " + formatNames(true) + "; read only: " + formatNames(false) + ".\n" +
			"Models may be larger than memory. docs/convert.md says what each format keeps.",
		Example: "  vksplat convert out model.spz\n  vksplat convert model.ply small.ply --max-splats 500000 --sh-degree 1",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fault.Usagef("as in: vksplat convert model.ply model.spz", "convert needs a file to read and one to write, %d are given", len(args))
			}
			return nil
		},
	}
	table := o.table()
	register(cmd.Flags(), table)
	offerValues(a, cmd, table)
	cmd.RunE = runs(a, func(args []string) error {
		o.in, o.out = args[:len(args)-1], args[len(args)-1]
		return ofCapture(runConvert(a, o))
	})
	return cmd
}

// formatNames lists the formats that can be written, or those that cannot.
func formatNames(written bool) string {
	var names []string
	for _, f := range splatfile.Formats() {
		if (f.Write != nil) == written {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// formatWords lists the formats that can be written, for completion.
func formatWords() []string { return strings.Split(formatNames(true), ", ") }

func (o *convertOptions) table() []optionGroup {
	return []optionGroup{{"", []option{
		text(&o.to, "to", "write the format `FORMAT`, whatever OUT's name is").oneOf(formatWords()...),
		truth(&o.merge, "merge", "put all of IN together; the highest degree of spherical harmonics is theirs"),
		integer(&o.degree, "sh-degree", "drop spherical harmonics above degree `N`; -1: none"),
		integer(&o.pad, "pad-sh", "fill up with zeros to degree `N`, which some importers want to be 3; -1: not"),
		text(&o.box, "crop", "keep splats whose centres are in the box `MINX,MINY,MINZ,MAXX,MAXY,MAXZ`"),
		text(&o.sphere, "sphere", "keep splats whose centres are in the sphere `X,Y,Z,R`"),
		float(&o.opacity, "min-opacity", "drop splats of an opacity below `X`, 0 to 1"),
		float(&o.outlier, "prune-outliers", "drop splats that stand alone: spacing `N` robust deviations above the median (4 if none is given), and beyond their own size").orAlone("4"),
		integer(&o.most, "max-splats", "keep the `N` most important: opacity times mean area over squared distance from the middle; 0: all"),
		text(&o.orient, "orient", "`up` turns the scene so that the cameras' mean up is -y, which viewers take for up").oneOf("up"),
		text(&o.cameras, "cameras", "with --orient, the cameras: a capture's folder, cameras.json or transforms.json, `SCENE|FILE` (default: found beside IN)"),
		text(&o.move, "transform", "`MOVES` one after the other, as in \"scale 2 rotate 0,90,0 translate 1,2,3\", or 12 or 16 numbers of a matrix"),
		integer(&o.write.Version, "spz-version", "write version `N` of SPZ; 0: the one that most programs read"),
		integer(&o.write.Iterations, "sog-iterations", "search `N` times for SOG's palette of spherical harmonics; 0: as usual"),
		overwriteOption(&o.replace, "OUT"),
		text(&o.write.TempDir, "temp-dir", "put temporary files into the folder `DIR` (default: OUT's)").isFolder(),
	}}}
}

// format returns what is to be written.
func (o *convertOptions) format() (*splatfile.Format, error) {
	if o.to == "" {
		return writableFormat(o.out, ", or add --to FORMAT")
	}
	for _, f := range splatfile.Formats() {
		if f.Name == o.to && f.Write != nil {
			return f, nil
		}
	}
	return nil, fault.Usagef("formats that can be written: "+formatNames(true), "flag --to: %q is no format that can be written", o.to)
}

// writableFormat returns the format that a file's name says. Remedy is what can be done besides giving it another name.
func writableFormat(path, remedy string) (*splatfile.Format, error) {
	if err := refuseFolder(path); err != nil {
		return nil, err
	}
	f := splatfile.ByName(filepath.Base(path))
	known := "formats that can be written: " + formatNames(true)
	if f == nil {
		return nil, fault.Usagef("name the file as in model.ply"+remedy+"; "+known, "the name %s says no format", path)
	}
	if f.Write == nil {
		return nil, fault.Usagef(known, "%s: %s is read and not written", path, f.Name)
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
func (o *convertOptions) check(f *splatfile.Format) error {
	switch {
	case len(o.in) > 1 && !o.merge:
		return fault.Usagef("add --merge to put them together into one, or convert one after the other", "%d models to read and one to write", len(o.in))
	case len(o.in) == 1 && o.merge:
		return fault.Usagef("as in: vksplat convert --merge a.ply b.ply both.ply", "flag --merge: one model is nothing to merge")
	case o.degree < -1 || o.degree > scene.MaxSHDegree || o.pad < -1 || o.pad > scene.MaxSHDegree:
		return fault.Usagef("degrees are 0 to 3", "flags --sh-degree and --pad-sh: %d is no degree", pickBad(o.degree, o.pad))
	case !(o.opacity >= 0 && o.opacity <= 1):
		return fault.Usagef("give a number from 0 to 1", "flag --min-opacity: %g is no opacity", o.opacity)
	case !(o.outlier >= 0) || math.IsInf(o.outlier, 0):
		return fault.Usagef("give a number as in 4", "flag --prune-outliers: %g deviations", o.outlier)
	case o.most < 0:
		return fault.Usagef("give a number from 1 up", "flag --max-splats: %d splats", o.most)
	case o.orient != "" && o.orient != "up":
		return fault.Usagef("as in: --orient up", "flag --orient: %q is not known", o.orient)
	case o.cameras != "" && o.orient == "":
		return fault.Usagef("add --orient up", "--cameras says where up is, and nothing is to be turned")
	case o.write.Version != 0 && f.Name != "spz":
		return fault.Usagef("leave it out, or name OUT as in model.spz", "flag --spz-version: what is written is %s", f.Name)
	case o.write.Iterations != 0 && f.Name != "sog":
		return fault.Usagef("leave it out, or name OUT as in model.sog", "flag --sog-iterations: what is written is %s", f.Name)
	case o.write.Iterations < 0:
		return fault.Usagef("give a number from 1 up", "flag --sog-iterations: %d", o.write.Iterations)
	case o.write.TempDir != "" && !output.IsFolder(o.write.TempDir):
		return fault.Usagef("name a folder that is there", "flag --temp-dir: %s is no folder", o.write.TempDir)
	}
	return o.checkOut()
}

// pickBad returns the one that is no degree.
func pickBad(a, b int) int {
	if a < -1 || a > scene.MaxSHDegree {
		return a
	}
	return b
}

// checkOut refuses to write over what is read, or where no file can be.
func (o *convertOptions) checkOut() error {
	if err := refuseFolder(o.out); err != nil {
		return err
	}
	out, err := os.Stat(o.out)
	if err != nil {
		return output.RefuseExisting("", o.replace, splatfile.Outputs(o.out)...) // it is not there yet, perhaps others are
	}
	for _, in := range o.in {
		path, err := splatfile.Find(in)
		if err != nil {
			return err
		}
		if st, err := os.Stat(path); err == nil && os.SameFile(st, out) {
			return fault.Usagef("choose another name for what is written", "%s would be written over while it is read", o.out)
		}
	}
	if !out.Mode().IsRegular() {
		return fault.Usagef("choose another name for what is written", "%s is no regular file", o.out)
	}
	return output.RefuseExisting("", o.replace, splatfile.Outputs(o.out)...)
}

// selection reads the flags that say which splats stay.
func (o *convertOptions) selection() (s splatfile.Selection, err error) {
	s = splatfile.Selection{MinOpacity: o.opacity, Outliers: o.outlier, MaxSplats: o.most}
	if o.box != "" {
		v, err := someNumbers(o.box, 6)
		if err != nil || v[0] > v[3] || v[1] > v[4] || v[2] > v[5] {
			return s, fault.Usagef("give six numbers, the least x, y, z and then the greatest, as in -1,-1,-1,1,1,1", "flag --crop: %q is no box", o.box)
		}
		s.Box = (*[6]float64)(v)
	}
	if o.sphere != "" {
		v, err := someNumbers(o.sphere, 4)
		if err != nil || !(v[3] > 0) {
			return s, fault.Usagef("give four numbers, the centre and a radius above 0, as in 0,0,0,2.5", "flag --sphere: %q is no sphere", o.sphere)
		}
		s.Sphere = (*[4]float64)(v)
	}
	return s, nil
}

// runConvert reads, changes and writes a model.
func runConvert(a *cli.Console, o *convertOptions) (err error) {
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
	moves := splatfile.Unmoved()
	if o.move != "" {
		if moves, err = splatfile.ParseTransform(o.move); err != nil {
			return fault.Usagef("as in \"scale 2 rotate 0,90,0 translate 1,2,3\", or the rows of a matrix", "flag --transform: %v", err)
		}
	}
	debug.SetMemoryLimit(convertHeap)
	w := newWatch(a)
	defer w.end()
	model, err := openModels(a, o.in, w)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	up := splatfile.Unmoved()
	if o.orient != "" {
		if up, err = uprightMove(a, o); err != nil {
			return err
		}
	}
	release, err := output.Claim(filepath.Dir(o.out), false)
	if err != nil {
		return err
	}
	defer release()
	ctx, stop := a.Interruptible(cli.Always("stopping; nothing is left behind"))
	defer stop()
	a.OnAbort = func() {
		dropTemporary(o.out)
		release()
	}
	w.ctx = ctx
	err = changeModel(a, o, f, model, selection, up, moves)
	if errors.Is(err, context.Canceled) {
		err = fault.ErrInterrupted
	}
	return err
}

// changeModel selects and moves the splats of a model and writes it.
func changeModel(a *cli.Console, o *convertOptions, f *splatfile.Format, model splatfile.Source, selection splatfile.Selection, up, moves splatfile.Similarity) error {
	model, dropped, err := splatfile.Select(model, selection)
	if err != nil {
		return err
	}
	tellDropped(a, dropped)
	if model.Info().N == 0 {
		return &fault.Error{Op: "convert", Path: o.in[0], Err: errors.New("no splat is left to write"), Hint: "the file may be empty or damaged, or the flags leave nothing: see what vksplat info --bounds says of the positions"}
	}
	if o.orient != "" {
		model = splatfile.Move(model, up, "y")
	}
	model = splatfile.Move(model, moves, "")
	if o.degree >= 0 {
		model = splatfile.WithDegree(model, min(o.degree, model.Info().Degree))
	}
	model = splatfile.WithDegree(model, max(o.pad, model.Info().Degree))
	o.write.Generator = "vksplat " + cli.Version()
	lost, err := f.Write(o.out, model, o.write)
	if err != nil {
		return err
	}
	for _, text := range lost {
		a.Warn(o.out + " does not keep everything: " + text)
	}
	info, size := model.Info(), ""
	if bytes, err := splatfile.Size(o.out); err == nil {
		size = ", " + pipeline.BytesText(bytes)
	}
	a.Printf("model: %s: %s, %s of SH degree %d%s\n", o.out, f.Name, cli.Count(info.N, "splat"), info.Degree, size)
	return nil
}

// tellDropped says what is not written, and why.
func tellDropped(a *cli.Console, d splatfile.Dropped) {
	if d.Broken > 0 {
		a.Warn(fmt.Sprintf("%s left out: numbers that are NaN or infinite, a rotation of length zero or a scale beyond e^%d", cli.Count(d.Broken, "splat"), scene.HugeLog))
	}
	for _, part := range []struct {
		n   int
		why string
	}{{d.Outside, "outside of what is kept"}, {d.Faint, "below --min-opacity"}, {d.Outliers, "alone, by --prune-outliers"}, {d.Surplus, "least important, by --max-splats"}} {
		if part.n > 0 {
			a.Printf("dropped %s: %s\n", cli.Count(part.n, "splat"), part.why)
		}
	}
}

// openModels opens what is to be read, merged if there are several, and tells what the files hold beside splats.
func openModels(a *cli.Console, in []string, w *watch) (splatfile.Source, error) {
	var opened openedModels
	for _, path := range in {
		model, err := splatfile.Open(path)
		if err != nil {
			return nil, errors.Join(err, opened.Close())
		}
		opened.parts = append(opened.parts, w.over(model))
		for _, n := range model.Info().Notes {
			a.Warn(path + ": " + n)
		}
	}
	if len(opened.parts) == 1 {
		return opened.parts[0], nil
	}
	antialiased := func(m splatfile.Source) bool { return m.Info().Meta.Antialiased }
	if first := antialiased(opened.parts[0]); slices.ContainsFunc(opened.parts, func(m splatfile.Source) bool { return antialiased(m) != first }) {
		a.Warn("some of the models were trained with --antialiased and some were not: the result is marked as the first, and the others look thinner or thicker than they should")
	}
	look := func(m splatfile.Source) string {
		meta := m.Info().Meta
		background := [3]float32{}
		if meta.Background != nil {
			background = *meta.Background
		}
		return fmt.Sprint(background, meta.Near, meta.Exposure)
	}
	if first := look(opened.parts[0]); slices.ContainsFunc(opened.parts, func(m splatfile.Source) bool { return look(m) != first }) {
		a.Warn("the models were trained on different backgrounds, with different near planes or exposure: the result says those of the first")
	}
	var err error
	if opened.Source, err = splatfile.Merge(opened.parts); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return &opened, nil
}

// openedModels is a merged model with the files that it comes from.
type openedModels struct {
	splatfile.Source
	parts []splatfile.Source
}

// Close closes all files.
func (o *openedModels) Close() error {
	var errs []error
	for _, m := range o.parts {
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
			_ = os.Remove(filepath.Join(filepath.Dir(path), e.Name())) // the process ends here; what stays has a name that says what it is
		}
	}
}
