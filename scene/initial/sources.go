package initial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/pointcloud"
)

// Kinds of Options.
const (
	InitAuto   = ""       // the capture's points; random ones where there are none and the capture says where
	InitPoints = "points" // the capture's points
	InitRandom = "random" // random points where most cameras look
	InitPLY    = "ply"    // a file: a PLY file of points, or a model of splats, which are used as they are
)

// DefaultRandomPoints is the number of points that InitRandom makes by default.
const DefaultRandomPoints = 100_000

// SyntheticHalf is half the edge of the cube around the origin that holds a synthetic scene, in the capture's units:
// 1.3 as in INRIA's loader.
const SyntheticHalf = 1.3

// maxInitPoints bounds the points to make: beyond it no device trains them.
const maxInitPoints = 1 << 28

// Options says what the first splats are made from. The JSON names are also the keys of configuration files and, with
// dashes, flags.
type Options struct {
	Kind   string `json:"init"`        // InitAuto, InitPoints, InitRandom or InitPLY
	File   string `json:"init_file"`   // of InitPLY, in the capture's own frame
	Points int    `json:"init_points"` // of InitRandom; 0: 100,000
	// edge of a cell in the capture's units: points in one cell become one; 0: all points are kept
	Grid    float64 `json:"init_grid"`
	Opacity float64 `json:"-"` // of splats made from points, between 0 and 1
	// of splats made from points: times the mean distance to the three nearest ones
	Scale  float64 `json:"-"`
	Seed   uint64  `json:"-"`
	Degree int     `json:"-"` // of the spherical harmonics

	Model ModelOpener `json:"-"` // of InitPLY, for formats that this package does not know; nil: PLY alone
	// hears what is wrong with the file of InitPLY, and it is used all the same; nil: nothing does
	Warn func(text string) `json:"-"`
}

func (o Options) warn(note string) {
	if o.Warn != nil {
		o.Warn(o.File + ": " + note)
	}
}

// ModelOpener checks that a file is a model of splats. read gives the model, in the frame of the file, which has
// n splats.
type ModelOpener func(file string) (n int, read func() (*scene.Splats, ply.Meta, error), err error)

// ParseInit splits the value of a flag, points, random, FILE or ply:FILE, into kind and file. Errors are of kind
// ErrUsage.
func ParseInit(s string) (kind, file string, err error) {
	switch {
	case s == InitPoints || s == InitRandom:
		return s, "", nil
	case s == "auto" || s == "":
		return InitAuto, "", nil
	case strings.HasPrefix(s, InitPLY+":") && len(s) > len(InitPLY)+1:
		return InitPLY, s[len(InitPLY)+1:], nil
	case strings.ContainsAny(s, `./\`):
		return InitPLY, s, nil
	}
	return "", "", initError("", "give points, random or a file, as in ply:FILE",
		"%q is not a source of initial splats", s)
}

func initError(path, hint, format string, args ...any) error {
	return &fault.Error{Op: "initialise splats", Path: path, Kind: fault.ErrUsage, Err: fmt.Errorf(format, args...),
		Hint: hint}
}

func (o Options) check() error {
	switch o.Kind {
	case InitAuto, InitPoints, InitRandom:
	case InitPLY:
		if o.File == "" {
			return initError("", "as in ply:points.ply", "no file is named")
		}
	default:
		return initError("", "give points, random or a file, as in ply:FILE",
			"%q is not a source of initial splats", o.Kind)
	}
	switch {
	case o.Points < 0 || o.Points > maxInitPoints:
		return initError("", fmt.Sprintf("give a number up to %d", maxInitPoints), "%d initial points", o.Points)
	case !(o.Grid >= 0) || math.IsInf(o.Grid, 0):
		return initError("", "give the edge of a cell in the capture's units", "%g is not a cell size", o.Grid)
	case !(o.Opacity > 0 && o.Opacity < 1):
		return initError("", "give a number between 0 and 1", "%g is not an initial opacity", o.Opacity)
	case !(o.Scale > 0) || math.IsInf(o.Scale, 0):
		return initError("", "give a positive number", "%g is not an initial scale", o.Scale)
	}
	return nil
}

// Random says whether Splats makes random points: if asked to, and for a capture without points that says where they
// would be.
func (o Options) Random(c *scene.Capture) bool {
	return o.Kind == InitRandom ||
		o.Kind == InitAuto && len(c.Points) == 0 && (c.Synthetic || len(withDepths(c)) > 0)
}

// Check finds out, without making them, whether Splats can make splats: whether the options make sense, and
// points or a file are there.
func Check(c *scene.Capture, o Options) error {
	_, err := Count(c, o)
	return err
}

// Count is Check that also returns how many points or splats Splats begins from. It makes as many splats or, where
// points are not finite or share a cell of the grid, fewer.
func Count(c *scene.Capture, o Options) (int, error) {
	if err := o.check(); err != nil {
		return 0, err
	}
	switch {
	case o.Kind == InitPLY:
		n, _, err := o.open()
		return n, err
	case o.Random(c):
		return o.randomCount(), nil
	case len(c.Points) > 0:
		return len(c.Points), nil
	}
	return 0, noPoints(c)
}

// Splats makes the first splats, in the training frame: call it after Normalise. The same capture and options give the
// same splats. Its error is that of ctx if that ends first.
func Splats(ctx context.Context, c *scene.Capture, o Options) (*scene.Splats, error) {
	if err := Check(c, o); err != nil {
		return nil, err
	}
	switch {
	case o.Kind == InitPLY:
		return splatsFromFile(ctx, c, o)
	case o.Kind != InitRandom && len(c.Points) == 0 && c.Synthetic:
		return splatsFromPoints(ctx, c, cubePoints(ctx, c, o), o)
	case o.Random(c):
		return splatsFromPoints(ctx, c, randomPoints(ctx, c, o), o)
	}
	return splatsFromPoints(ctx, c, c.Points, o)
}

// noPoints is the error of a capture that nothing can start from.
func noPoints(c *scene.Capture) error {
	hint := "start with random points, " + fault.Setting("init") + " random, or with a point cloud, " +
		fault.Setting("init") + " ply:FILE"
	if c.Format == scene.FormatColmap {
		hint += ", or triangulate points from the known poses: colmap point_triangulator"
	}
	return &fault.Error{Op: "initialise splats", Path: c.Model,
		Err: errors.New("the capture has no usable points to start from"), Hint: hint}
}

// splatsFromPoints samples points, which are in the training frame, by the grid and makes splats of them.
func splatsFromPoints(ctx context.Context, c *scene.Capture, points []scene.Point,
	o Options) (*scene.Splats, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // points may be missing
	}
	if o.Grid > 0 {
		var err error
		if points, err = gridSample(finitePoints(points), o.Grid*c.Frame.Scale); err != nil {
			return nil, err
		}
	}
	s := Initialise(ctx, points, o.Seed, o.Degree, o.Opacity, o.Scale)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.N == 0 {
		return nil, noPoints(c)
	}
	return s, nil
}

// splatsFromFile reads splats or points from a file.
func splatsFromFile(ctx context.Context, c *scene.Capture, o Options) (*scene.Splats, error) {
	_, read, err := o.open()
	if err != nil {
		return nil, err
	}
	if read == nil {
		points, notes, err := pointcloud.Read(o.File)
		if err != nil {
			return nil, err
		}
		for _, note := range notes {
			o.warn(note)
		}
		if len(points) == 0 {
			return nil, fault.Data("initialise splats", o.File, "start with another file, or with "+
				fault.Setting("init")+" random", "the file has no points")
		}
		for i := range points {
			for k := range 3 {
				points[i].Pos[k] = (points[i].Pos[k] - c.Frame.Center[k]) * c.Frame.Scale
			}
		}
		return splatsFromPoints(ctx, c, points, o)
	}
	if o.Grid > 0 {
		return nil, initError(o.File, "leave out "+fault.Setting("init-grid")+", or start with a point cloud",
			"a grid samples points, and this is a model of splats")
	}
	s, meta, err := read()
	if err != nil {
		return nil, err
	}
	if bad := s.NonFinite(); bad > 0 {
		return nil, fault.Data("initialise splats", o.File,
			"the training that made this file diverged, or the file is damaged: make or copy it again",
			"%d of %d splats hold NaN or infinite numbers", bad, s.N)
	}
	if bad := s.WithoutDirection(); bad > 0 {
		return nil, fault.Data("initialise splats", o.File,
			fault.Command("convert "+o.File+" NEW.ply")+" leaves them out",
			"%d of %d splats have no rotation: its length is zero, or too large to square", bad, s.N)
	}
	if s.N == 0 {
		return nil, fault.Data("initialise splats", o.File, "start with another file, or with "+fault.Setting("init")+
			" random", "the file has no splats")
	}
	var origin [3]float64
	if meta.Origin != nil {
		origin = *meta.Origin
	}
	return s.FromCapture(c.Frame, origin).WithDegree(o.Degree), nil
}

// open checks the file, which has n splats or points, and returns what reads its splats, nil where it holds points.
func (o Options) open() (n int, read func() (*scene.Splats, ply.Meta, error), err error) {
	if n, is, err := pointcloud.CountLAS(o.File); is {
		return n, nil, err
	}
	n, splats, err := plyHasSplats(o.File)
	switch {
	case o.Model != nil && (errors.Is(err, ply.ErrNotPLY) || atomicfile.IsDir(o.File)):
	case err != nil || !splats:
		return n, nil, err
	}
	if o.Model != nil {
		return o.Model(o.File)
	}
	return n, func() (*scene.Splats, ply.Meta, error) {
		s, info, err := ply.Read(o.File)
		for _, note := range info.Notes() {
			o.warn(note)
		}
		return s, info.Meta, err
	}, nil
}

// plyHasSplats says whether a PLY file holds splats rather than points, and how many of either.
func plyHasSplats(file string) (n int, is bool, err error) {
	err = ply.ReadWith(file, func(r io.Reader, size int64) error {
		p, err := ply.NewReader(r, size)
		if err != nil {
			return err
		}
		v := p.Vertex()
		n = v.Rows()
		is = v.Index("packed_position") >= 0 || v.Index("f_dc_0") >= 0 && v.Index("opacity") >= 0
		return nil
	})
	return n, is, err
}
