package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/blocks"
	"vksplat/scene/fingerprint"
	"vksplat/scene/load"
)

// partitionOptions is everything that partition is asked for.
type partitionOptions struct {
	scene     string
	out       string
	shape     shapeFlag
	overlap   float64
	up        string
	eval      bool
	testEvery int
	testList  string
	load      captured.Options
	device    pipeline.DeviceOptions
	given     func(flag string) bool
}

func partitionCommand(a *cli.Console) *cobra.Command {
	o := &partitionOptions{overlap: 0.2, testEvery: captured.HeldOutEvery, load: captured.Options{Model: scene.AnyModel}}
	cmd := &cobra.Command{
		Use:   "partition SCENE -o PLAN",
		Short: "Divide a capture that fits no device into blocks that do",
		Long: "Divide the capture SCENE on the ground plane into blocks of about as many cameras and\n" +
			"points each, and write to the folder PLAN which cameras see each block and which points\n" +
			"it begins from. vksplat train PLAN trains the blocks one after the other and merges\n" +
			"them into one scene, PLAN/out. plan.png shows the blocks from above. docs/blocks.md\n" +
			"says more.",
		Example: "  vksplat partition city -o city_plan --eval\n  vksplat partition city -o city_plan --blocks 3x2\n  vksplat train city_plan",
		Args:    one("SCENE folder"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	table := []optionGroup{{options: o.table()}, {options: loadTable(&o.load)}, {options: deviceOptions(&o.device)}}
	fs := cmd.Flags()
	register(fs, table)
	offerValues(a, cmd, table)
	o.given = fs.Changed
	cmd.RunE = runs(a, func(args []string) error {
		o.scene = args[0]
		if err := o.check(); err != nil {
			return err
		}
		for _, opt := range deviceOptions(&o.device) {
			if o.shape.columns > 0 && o.given(opt.name) {
				a.Warn("--" + opt.name + " has no effect with --blocks " + o.shape.String())
			}
		}
		return runPartition(a, o)
	})
	return cmd
}

// table lists the options that are partition's own.
func (o *partitionOptions) table() []option {
	return []option{
		text(&o.out, "output", "write to the folder `PLAN` (required)").letter("o").isFolder(),
		other(&o.shape, "blocks", "`AxB`: A columns along the longer side, of B blocks each; auto: as many as this device's memory and the number of photos ask for").oneOf("auto"),
		float(&o.overlap, "overlap", "blocks reach over their edges by `X` times their length, 0 to 1"),
		text(&o.up, "up", "the direction up in the capture's frame is `X,Y,Z` (default: found from the cameras)"),
		truth(&o.eval, "eval", "hold every 8th photo out of all blocks, to measure on"),
		integer(&o.testEvery, "test-every", "with --eval, hold every `N`th photo out"),
		text(&o.testList, "test-list", "hold out the photos that `FILE` names, one a line"),
	}
}

// check reports what makes no sense, before any work.
func (o *partitionOptions) check() error {
	switch {
	case o.out == "":
		return fault.Usagef("name the folder to write, as in: vksplat partition SCENE -o PLAN", "no output folder: -o is required")
	case !(o.overlap >= 0 && o.overlap <= 1):
		return fault.Usagef("give a share from 0 to 1, as in 0.2", "flag --overlap: %g is no share of a block's length", o.overlap)
	case o.testEvery < 2:
		return fault.Usagef("give 2 or more", "flag --test-every: %d leaves no photo to train on", o.testEvery)
	}
	_, err := o.upward()
	return err
}

// upward reads --up; nil leaves it to the cameras.
func (o *partitionOptions) upward() (*[3]float64, error) {
	if o.up == "" {
		return nil, nil
	}
	v, err := threeNumbers(o.up)
	if length := math.Hypot(math.Hypot(v[0], v[1]), v[2]); err != nil || !(length > 1e-9 && length < 1e9) {
		return nil, fault.Usagef("give three numbers, as in 0,0,1", "flag --up: %q is no direction", o.up)
	}
	return &v, nil
}

// shapeFlag is a number of columns and rows, 0 for auto.
type shapeFlag struct{ columns, rows int }

func (f *shapeFlag) Type() string { return "AxB" }

func (f *shapeFlag) String() string {
	if f.columns == 0 {
		return "auto"
	}
	return fmt.Sprintf("%dx%d", f.columns, f.rows)
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
		return fault.Usagef(fmt.Sprintf("give auto or columns and rows as in 3x2, %d blocks at most", blocks.MostBlocks), "%q is no number of blocks", s)
	}
	*f = shapeFlag{a, b}
	return nil
}

// runPartition divides a capture and writes the plan.
func runPartition(a *cli.Console, o *partitionOptions) error {
	if err := o.refuseForeign(); err != nil {
		return err
	}
	c, err := load.Capture(o.scene, o.load.Options())
	if err != nil {
		return err
	}
	captured.TellWarnings(a, c)
	p := &planFile{Format: planFormat, Version: planVersion, Program: cli.Version(), Capture: captured.SourceOf(o.scene, &o.load), Overlap: o.overlap,
		Photos: len(c.Cameras), Points: len(c.Points), dir: o.out, HeldOut: []string{}}
	if err := captured.RefuseInside(o.out, "--output", c); err != nil {
		return err
	}
	sum, err := fingerprint.Shape(c)
	if err != nil {
		return err
	}
	p.Fingerprint = hex.EncodeToString(sum[:])
	if p.Origin, err = c.Origin("auto"); err != nil {
		return err
	}
	train, err := o.split(c, p)
	if err != nil {
		return err
	}
	list, sight, err := divideCapture(a, o, c, p, train)
	if err != nil {
		return err
	}
	release, err := output.Claim(o.out, true)
	if err != nil {
		return err
	}
	defer release()
	if err := p.describe(c, list); err != nil {
		return err
	}
	held := map[int]bool{}
	for i := range c.Cameras {
		held[i] = true
	}
	for _, i := range train {
		delete(held, i)
	}
	if err := sight.WritePicture(filepath.Join(o.out, planPicture), list, func(i int) bool { return held[i] }); err != nil {
		return err
	}
	if err := p.write(list); err != nil {
		return err
	}
	return printPartition(a, p)
}

// refuseForeign refuses to replace files of the user, and folders that are probably a mistake.
func (o *partitionOptions) refuseForeign() error {
	if output.IsFile(filepath.Join(o.out, planName)) {
		return fault.Usagef("choose another folder, or remove this one with the blocks in it", "%s holds a plan already", o.out)
	}
	if err := output.RefusePlace(o.out, "flag --output: ", planName); err != nil {
		return err
	}
	foreign, err := filepath.Glob(filepath.Join(output.EscapeGlob(filepath.Join(o.out, pointsFolder)), "*"))
	if picture := filepath.Join(o.out, planPicture); output.IsFile(picture) {
		foreign = append(foreign, picture)
	}
	if err != nil {
		return err
	}
	return output.RefuseForeign(foreign, "or choose another folder with -o")
}

// split holds photos out and returns the cameras to train on.
func (o *partitionOptions) split(c *scene.Capture, p *planFile) (train []int, err error) {
	if err := captured.HoldOut(c, o.testList); err != nil {
		return nil, err
	}
	every := 0
	if o.eval {
		every = o.testEvery
	}
	train, test := c.Split(every)
	for _, i := range test {
		p.HeldOut = append(p.HeldOut, c.Cameras[i].Name)
	}
	p.holdOut(c)
	switch {
	case len(train) == 0:
		return nil, divideError(c, "hold out fewer photos", "no photo is left to train on")
	case len(c.Points) == 0:
		return nil, divideError(c, "give the capture points, as COLMAP's point_triangulator makes them", "it has no points, which tell which camera sees what")
	}
	return train, nil
}

// divideError is the error of a capture that cannot be divided so.
func divideError(c *scene.Capture, hint, format string, args ...any) error {
	return &fault.Error{Op: "divide capture", Path: c.Model, Err: fmt.Errorf(format, args...), Hint: hint}
}

// mostlySeen is the share of the cameras that a block has, on average, above which it saves little.
const mostlySeen = 0.75

// leastCameras is how many photos of a block say something about depth.
const leastCameras = 3

// printPartition says what the blocks are.
func printPartition(a *cli.Console, p *planFile) error {
	a.Printf("%s, %s: %d x %d blocks\n", cli.Count(p.Photos, "camera"), cli.Count(p.Points, "point"), p.Columns, p.Rows)
	w := tabwriter.NewWriter(a.Stdout, 0, 8, 2, ' ', 0)
	for _, b := range p.Blocks {
		_, _ = fmt.Fprintf(w, "  block %d\t%s\t%s, %d of them within its margin\n", b.Block, cli.Count(len(b.Cameras), "camera"), cli.Count(b.Points, "point"), b.Inside)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print plan: %w", err)
	}
	seen := 0
	for _, b := range p.Blocks {
		seen += len(b.Cameras)
	}
	if n := len(p.Blocks); n > 1 && float64(seen) > mostlySeen*float64(n*p.Photos) {
		a.Warn("most cameras see most of the blocks, as where all look at one thing: blocks save little there, and each costs nearly what the whole does")
	}
	if len(p.Blocks) == 1 {
		a.Note("one block is the whole capture: vksplat train " + cli.Quoted(p.Capture.Scene) + " does the same")
	}
	if len(p.HeldOut) > 0 {
		a.Printf("held out of all blocks: %s\n", cli.Count(len(p.HeldOut), "photo"))
	} else {
		a.Note("no photo is held out, so that merging cannot check the seams: --eval holds every 8th out")
	}
	a.Printf("from above: %s\ntrain and merge: vksplat train %s\n", filepath.Join(p.dir, planPicture), cli.Quoted(p.dir))
	return nil
}
