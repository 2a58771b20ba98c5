package plans

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/kelindar/bitmap"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/blocks"
	"vksplat/scene/colmap"
	"vksplat/scene/fingerprint"
	"vksplat/scene/load"
	"vksplat/scene/splatfile"
)

// Files of a plan, in PLAN.
const (
	Name          = "plan.json"
	Picture       = "plan.png"
	Format        = "vksplat plan"
	Version       = 1
	blockPrefix   = "block_" // OUT of a block's training, and with blockPoints the points that it begins from
	PointsFolder  = "points"
	pointsSuffix  = ".bits"
	MergedFolder  = "out" // of the merged scene
	MergeFile     = "merge.json"
	Hint          = "make the plan again, in another folder: vksplat partition"
	planReadError = "read plan"
)

// Plan is the content of plan.json: how a capture is divided into blocks. Coordinates are those of the capture.
type Plan struct {
	Format  string          `json:"format"` // planFormat
	Version int             `json:"version"`
	Program string          `json:"program"` // version of the program that made it
	Capture captured.Source `json:"capture"`
	// SHA-256 of the capture without the photos' content, see fingerprint.Shape
	Fingerprint string        `json:"fingerprint"`
	Origin      [3]float64    `json:"origin"`   // is subtracted from written coordinates
	Photos      int           `json:"photos"`   // cameras of the capture
	Points      int           `json:"points"`   // of the capture, those that only held-out photos account for aside
	HeldOut     []string      `json:"held_out"` // names of cameras that no block trains on
	Ground      blocks.Ground `json:"ground"`
	Columns     int           `json:"columns"`
	Rows        int           `json:"rows"`
	Overlap     float64       `json:"overlap"`
	Blocks      []planBlock   `json:"blocks"`

	Dir string `json:"-"`
}

// planBlock is a block of a plan.
type planBlock struct {
	Block   int         `json:"block"`  // its number
	Core    blocks.Rect `json:"core"`   // on the ground; null is infinity
	Margin  blocks.Rect `json:"margin"` //
	Points  int         `json:"points"` // that it begins from
	Inside  int         `json:"points_in_margin"`
	Trained int         `json:"trained"` // cameras that are not held out
	Cameras []string    `json:"cameras"` // that see it, held-out ones among them
}

// Share is how many of the photos that are trained on block k has, of 1.
func (p *Plan) Share(k int) float64 {
	return float64(p.Blocks[k].Trained) / float64(p.Photos-len(p.HeldOut))
}

// pointsFile holds the set of points of block k: bit i%64 of the little-endian 64-bit word i/64 for point i of the
// capture.
func pointsFile(dir string, k int) string {
	return filepath.Join(dir, PointsFolder, blockPrefix+strconv.Itoa(k)+pointsSuffix)
}

// BlockFolder is where block k is trained, unless another folder is named.
func (p *Plan) BlockFolder(k int) string {
	return filepath.Join(p.Dir, blockPrefix+strconv.Itoa(k))
}

// Follow reports whether the blocks' numbers of steps follow their photos: they are their shares of some number,
// rounded down or to the nearest, or, where each block is trained as a capture of its own, go as recipe.StepsFor.
func (p *Plan) Follow(steps []int) bool {
	alone := func(k int) float64 { return recipe.StepsFor(p.Blocks[k].Trained) }
	return multiples(steps, p.Share, 0) || multiples(steps, p.Share, 0.5) || multiples(steps, alone, 0.5)
}

// multiples reports whether each number n is one number times its weight, rounded such that the product is in
// [n - below, n - below + 1). 1 is the least that a product becomes.
func multiples(numbers []int, weight func(k int) float64, below float64) bool {
	least, most := 0.0, math.Inf(1)
	for k, n := range numbers {
		if n > 1 {
			least = max(least, (float64(n)-below)/weight(k))
		}
		most = min(most, (float64(n)-below+1)/weight(k))
	}
	return least < most
}

// IsPlan reports whether a folder holds a plan, and not a capture with some other plan.json.
func IsPlan(dir string) bool {
	path := filepath.Join(dir, Name)
	if !output.IsFile(path) {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close() // only read from
	var head [3]json.Token
	d := json.NewDecoder(f)
	for i := range head {
		if head[i], err = d.Token(); err != nil {
			return false
		}
	}
	return head == [3]json.Token{json.Delim('{'), "format", Format} // the first thing in it
}

// FindModel is splatfile.Find, which knows of no plans.
func FindModel(path string) (string, error) {
	file, err := splatfile.Find(path)
	return file, OfPlan(path, err)
}

// OfPlan is the error of a folder in which no model is found: of a plan's, a model is in a folder below, and of a run
// that was killed while it replaced another one, too.
func OfPlan(path string, err error) error {
	if err == nil {
		return nil
	}
	if text := output.NextText(path); text != "" {
		return fault.WithHint(err, text)
	}
	if !IsPlan(path) {
		return err
	}
	if merged := filepath.Join(path, MergedFolder); output.IsFolder(merged) {
		return fault.WithHint(err, "this is a plan; name its merged scene: "+cli.Quoted(merged))
	}
	return fault.WithHint(err, "this is a plan; make its model first: "+fault.Command("train "+cli.Quoted(path)))
}

// PlanError is the error of a plan that cannot be used.
func PlanError(path, hint, format string, args ...any) error {
	return &fault.Error{Op: planReadError, Path: path, Err: fmt.Errorf(format, args...), Hint: hint}
}

// Read reads and checks the plan in a folder.
func Read(dir string) (*Plan, error) {
	path := filepath.Join(dir, Name)
	if !output.IsFolder(dir) {
		return nil, PlanError(dir, "name the folder that vksplat partition wrote", "there is no such folder")
	}
	p := &Plan{Dir: dir}
	err := strictjson.ReadFile(path, p)
	if errors.Is(err, os.ErrNotExist) {
		return nil, PlanError(dir, "name the folder that vksplat partition wrote", "there is no %s in it", Name)
	}
	if err != nil {
		return nil, PlanError(path, Hint, "%w", fault.Pathless(err))
	}
	return p, p.check(path)
}

// check refuses a plan that this program did not make.
func (p *Plan) check(path string) error {
	switch {
	case p.Format != Format:
		return PlanError(path, Hint, "its format is %q, not %q", p.Format, Format)
	case p.Version != Version:
		return PlanError(path, Hint, "its version is %d, this program reads %d", p.Version, Version)
	}
	whole := p.Capture.Scene != "" && len(p.Blocks) > 0 && len(p.Blocks) == p.Columns*p.Rows && p.Ground.Check() == nil
	for k := range p.Blocks {
		b := &p.Blocks[k]
		whole = whole && b.Block == k && len(b.Cameras) > 0 && p.Share(k) > 0 && p.Share(k) <= 1
	}
	if !whole {
		return PlanError(path, Hint, "it is not a plan that vksplat partition wrote")
	}
	return nil
}

// Load reads the plan's capture and refuses one that is not what was divided.
func (p *Plan) Load(o scene.LoadOptions) (*scene.Capture, error) {
	c, err := load.Capture(p.Capture.Scene, o)
	if err != nil && !output.IsFolder(p.Capture.Scene) {
		return nil, fault.WithHint(err, "put the capture back there, or write its new place into "+
			cli.Quoted(filepath.Join(p.Dir, Name))+` as "scene"`)
	}
	if err != nil {
		return nil, err
	}
	sum, err := fingerprint.Shape(c)
	if err != nil {
		return nil, err
	}
	if hex.EncodeToString(sum[:]) != p.Fingerprint {
		return nil, PlanError(filepath.Join(p.Dir, Name),
			"put the capture back as it was, or divide it again into another folder: vksplat partition",
			"the capture %s has changed since: it has %s and %s, and had %d and %d", p.Capture.Scene,
			cli.Count(len(c.Cameras), "camera"), cli.Count(len(c.Points), "point"), p.Photos, p.Points)
	}
	c.HoldOutCameras(p.HeldOut)
	if _, _, err := colmap.DropUnobserved(c); err != nil {
		return nil, err
	}
	if len(c.Points) != p.Points {
		return nil, PlanError(filepath.Join(p.Dir, Name), Hint, "the plan divides %s, but the capture has %d without "+
			"those of held-out photos", cli.Count(p.Points, "point"), len(c.Points))
	}
	return c, nil
}

// Restrict leaves of the capture what block k is trained on.
func (p *Plan) Restrict(c *scene.Capture, k int) error {
	b := &p.Blocks[k]
	names := map[string]bool{}
	for _, name := range b.Cameras {
		names[name] = true
	}
	c.Cameras = slices.DeleteFunc(c.Cameras, func(cam scene.Camera) bool { return !names[cam.Name] })
	// Beside a block's photos those that the whole model lacks would be many.
	c.Warnings = slices.DeleteFunc(c.Warnings, func(w scene.Warning) bool { return w.Code == "unregistered-photos" })
	set, err := readPoints(pointsFile(p.Dir, k), len(c.Points))
	if err != nil {
		return err
	}
	if n := set.Count(); n != b.Points || len(c.Cameras) != len(b.Cameras) {
		return PlanError(filepath.Join(p.Dir, Name), Hint,
			"block %d has %d points and %d cameras in it, and %d and %d in the capture", k, b.Points, len(b.Cameras), n,
			len(c.Cameras))
	}
	kept := make([]scene.Point, 0, b.Points)
	set.Range(func(i uint32) { kept = append(kept, c.Points[i]) })
	c.Points = kept
	return nil
}

// readPoints reads a set of n points.
func readPoints(path string, n int) (bitmap.Bitmap, error) {
	want := int64((n + 63) / 64 * 8)
	data, err := fault.ReadFile(path, want)
	if err == nil && int64(len(data)) != want {
		err = fmt.Errorf("a set of %d points has %d bytes", n, want)
	}
	if err != nil {
		return nil, PlanError(path, Hint, "%w", err)
	}
	set := make(bitmap.Bitmap, len(data)/8)
	for i, b := range data {
		set[i/8] |= uint64(b) << (i % 8 * 8)
	}
	if last, some := set.Max(); some && int(last) >= n {
		return nil, PlanError(path, Hint, "it has the point %d of %d", last, n)
	}
	return set, nil
}

// writePoints writes a set of points.
func writePoints(path string, set bitmap.Bitmap) error {
	return atomicfile.WriteText(path, set.ToBytes())
}

// Write writes a divided capture into the plan's folder. What says that there is a plan comes last.
func (p *Plan) Write(list []blocks.Block) error {
	if err := os.MkdirAll(filepath.Join(p.Dir, PointsFolder), 0o777); err != nil {
		return output.FolderError(p.Dir, err)
	}
	for k := range list {
		if err := writePoints(pointsFile(p.Dir, k), list[k].Points); err != nil {
			return err
		}
	}
	if err := output.WriteJSON(filepath.Join(p.Dir, Name), p); err != nil {
		return err
	}
	own := output.ReadWritten(p.Dir)
	return errors.Join(own.Begin(p.files()...), own.End())
}

// Describe fills in the blocks. The capture's held-out photos are the plan's.
func (p *Plan) Describe(c *scene.Capture, list []blocks.Block) error {
	for k := range list {
		b := &list[k]
		out := planBlock{Block: k, Core: b.Core, Margin: b.Margin, Points: b.Points.Count(), Inside: b.Inside}
		b.Cameras.Range(func(i uint32) {
			out.Cameras = append(out.Cameras, c.Cameras[i].Name)
			if !c.IsHeldOut(int(i)) {
				out.Trained++
			}
		})
		if out.Trained < leastCameras || out.Inside == 0 {
			return DivideError(c, "ask for fewer blocks, or for more "+fault.Setting("overlap"),
				"block %d would have %s to train on and %s", k, cli.Count(out.Trained, "camera"),
				cli.Count(out.Inside, "point"))
		}
		p.Blocks = append(p.Blocks, out)
	}
	return nil
}

// files are those that partition writes.
func (p *Plan) files() []string {
	paths := []string{filepath.Join(p.Dir, Name), filepath.Join(p.Dir, Picture)}
	for k := range p.Blocks {
		paths = append(paths, pointsFile(p.Dir, k))
	}
	return paths
}

// BlockModel is the model of a block after a step.
func (p *Plan) BlockModel(k, step int) string {
	return filepath.Join(p.BlockFolder(k), output.ModelFolder+strconv.Itoa(step), output.ModelName)
}
