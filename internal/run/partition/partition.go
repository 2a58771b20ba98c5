package partition

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/blocks"
	"vksplat/scene/colmap"
	"vksplat/scene/fingerprint"
	"vksplat/scene/load"
)

// Options is everything that partition is asked for.
type Options struct {
	Scene     string
	Out       string
	Shape     shapeFlag
	Overlap   float64
	Up        string
	Eval      bool
	TestEvery int
	TestList  string
	Load      captured.Options
	Device    pipeline.DeviceOptions
	Given     func(flag string) bool
}

// Check reports what makes no sense, before any work.
func (o *Options) Check() error {
	switch {
	case o.Out == "":
		return fault.Usagef("name the folder to write, as in: "+fault.Command("partition SCENE -o PLAN"),
			"no output folder: %s is required", fault.Setting("output"))
	case !(o.Overlap >= 0 && o.Overlap <= 1):
		return fault.Usagef("give a share from 0 to 1, as in 0.2", "%s: %g is not a share of a block's length",
			fault.Named("overlap"), o.Overlap)
	case o.TestEvery < 2:
		return fault.Usagef("give 2 or more", "%s: %d leaves no photo to train on", fault.Named("test-every"),
			o.TestEvery)
	}
	_, err := o.upward()
	return errors.Join(err, captured.CheckSplit(o.TestList, o.Given))
}

// upward reads --up; nil leaves it to the cameras.
func (o *Options) upward() (*[3]float64, error) {
	if o.Up == "" {
		return nil, nil
	}
	v, err := cli.ThreeNumbers(o.Up)
	if length := math.Hypot(math.Hypot(v[0], v[1]), v[2]); err != nil || !(length > 1e-9 && length < 1e9) {
		return nil, fault.Usagef("give three numbers, as in 0,0,1", "%s: %q is not a direction", fault.Named("up"),
			o.Up)
	}
	return &v, nil
}

// shapeFlag is a number of columns and rows, 0 for auto.
type shapeFlag struct{ Columns, rows int }

func (f *shapeFlag) Type() string { return "AxB" }

func (f *shapeFlag) String() string {
	if f.Columns == 0 {
		return "auto"
	}
	return fmt.Sprintf("%dx%d", f.Columns, f.rows)
}

// Set parses auto or AxB.
func (f *shapeFlag) Set(s string) error {
	if s == "auto" {
		*f = shapeFlag{}
		return nil
	}
	first, second, _ := strings.Cut(s, "x")
	a, err1 := strconv.Atoi(first)
	b, err2 := strconv.Atoi(second)
	err := errors.Join(err1, err2)
	if err == nil {
		err = blocks.CheckShape(a, b)
	}
	if err != nil {
		return fault.Usagef(fmt.Sprintf("give auto or columns and rows as in 3x2, %d blocks at most",
			blocks.MostBlocks), "%q is not a block grid", s)
	}
	*f = shapeFlag{a, b}
	return nil
}

// Run divides a capture and writes the plan.
func Run(console *cli.Console, o *Options) error {
	if err := o.refuseForeign(); err != nil {
		return err
	}
	c, err := load.Capture(o.Scene, o.Load.Options())
	if err != nil {
		return err
	}
	captured.TellWarnings(console, c)
	p := &plans.Plan{Format: plans.Format, Version: plans.Version, Program: cli.Version(), Overlap: o.Overlap,
		Dir: o.Out, HeldOut: []string{}}
	if err := captured.RefuseInside(o.Out, "output", c); err != nil {
		return err
	}
	if c, err = o.calibrate(console, c); err != nil {
		return err
	}
	p.Capture, p.Photos = captured.SourceOf(o.Scene, &o.Load, captured.ModelFolder), len(c.Cameras)
	sum, err := fingerprint.Shape(c)
	if err != nil {
		return err
	}
	p.Fingerprint = hex.EncodeToString(sum[:])
	train, err := o.split(c, p)
	if err != nil {
		return err
	}
	if p.Origin, err = c.Origin("auto"); err != nil {
		return err
	}
	list, sight, err := divideCapture(console, o, c, p, train)
	if err != nil {
		return err
	}
	release, err := output.Claim(o.Out, true)
	if err != nil {
		return err
	}
	defer release()
	if err := p.Describe(c, list); err != nil {
		return err
	}
	if err := sight.WritePicture(filepath.Join(o.Out, plans.Picture), list, c.IsHeldOut); err != nil {
		return err
	}
	if err := o.Load.SaveCameras(o.Out, captured.ModelFolder); err != nil {
		return err
	}
	if err := p.Write(list); err != nil {
		return err
	}
	return printPartition(console, p)
}

// calibrate returns the capture with the cameras that all blocks are trained with. Only the calibration knows which
// photos are held out: they are no part of the fingerprint, and split says it.
func (o *Options) calibrate(console *cli.Console, c *scene.Capture) (*scene.Capture, error) {
	ctx, stop := console.Interruptible(cli.Always("stopping"))
	defer stop()
	given := c.HeldOut
	if err := o.holdOut(c); err != nil {
		return nil, err
	}
	c, _, err := captured.Calibrate(ctx, c, o.Scene, &o.Load, o.Device, console.Note, console.Note)
	c.HeldOut = given
	return c, err
}

func (o *Options) holdOut(c *scene.Capture) error {
	every := 0
	if o.Eval {
		every = o.TestEvery
	}
	return captured.HoldOut(c, o.TestList, every)
}

// refuseForeign refuses to replace files of the user, and folders that are probably a mistake.
func (o *Options) refuseForeign() error {
	if output.IsFile(filepath.Join(o.Out, plans.Name)) {
		return fault.Usagef("choose another folder, or remove this one with the blocks in it",
			"%s holds a plan already", o.Out)
	}
	if err := output.RefusePlace(o.Out, "output", plans.Name); err != nil {
		return err
	}
	foreign, err := filepath.Glob(filepath.Join(output.EscapeGlob(filepath.Join(o.Out, plans.PointsFolder)), "*"))
	if picture := filepath.Join(o.Out, plans.Picture); output.IsFile(picture) {
		foreign = append(foreign, picture)
	}
	if err != nil {
		return err
	}
	return output.RefuseForeign(foreign, "or choose another folder")
}

// split holds photos out and returns the cameras to train on.
func (o *Options) split(c *scene.Capture, p *plans.Plan) (train []int, err error) {
	if err := o.holdOut(c); err != nil {
		return nil, err
	}
	train, test := c.Split(0)
	for _, i := range test {
		p.HeldOut = append(p.HeldOut, c.Cameras[i].Name)
	}
	if _, _, err := colmap.DropUnobserved(c); err != nil {
		return nil, err
	}
	p.Points = len(c.Points)
	switch {
	case len(train) == 0:
		return nil, plans.DivideError(c, "hold out fewer photos", "no photo is left to train on")
	case len(c.Points) == 0:
		return nil, plans.DivideError(c, "give the capture points, as COLMAP's point_triangulator makes them",
			"it has no points, which tell which camera sees what")
	}
	return train, nil
}

// mostlySeen is the share of the cameras that a block has, on average, above which it saves little.
const mostlySeen = 0.75

// printPartition says what the blocks are.
func printPartition(console *cli.Console, p *plans.Plan) error {
	console.Printf("%s, %s: %d x %d blocks\n", cli.Count(p.Photos, "camera"), cli.Count(p.Points, "point"), p.Columns,
		p.Rows)
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', 0)
	for _, b := range p.Blocks {
		_, _ = fmt.Fprintf(w, "  block %d\t%s\t%s, %d of them within its margin\n", b.Block,
			cli.Count(len(b.Cameras), "camera"), cli.Count(b.Points, "point"), b.Inside)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print plan: %w", err)
	}
	seen := 0
	for _, b := range p.Blocks {
		seen += len(b.Cameras)
	}
	if n := len(p.Blocks); n > 1 && float64(seen) > mostlySeen*float64(n*p.Photos) {
		console.Warn("most cameras see most of the blocks, as when all look at one thing: blocks then save little, " +
			"and each costs nearly as much as the whole")
	}
	if len(p.Blocks) == 1 {
		console.Note("one block is the whole capture: " + fault.Command("train "+cli.Quoted(p.Capture.Scene)) +
			" does the same")
	}
	if len(p.HeldOut) > 0 {
		console.Printf("held out of all blocks: %s\n", cli.Count(len(p.HeldOut), "photo"))
	} else {
		console.Note("no photo is held out, so that merging cannot check the seams: " + fault.Setting("eval") +
			" holds every 8th out")
	}
	console.Printf("from above: %s\ntrain and merge: %s\n", filepath.Join(p.Dir, plans.Picture),
		fault.Command("train "+cli.Quoted(p.Dir)))
	return nil
}
