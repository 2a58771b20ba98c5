// Package mesh makes a mesh of a model: it draws the depths that the photos' cameras see of the splats and has package
// surface fuse them.
package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/remedy"
	"vksplat/internal/run/render"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/picture"
	"vksplat/scene/splatfile"
	"vksplat/scene/surface"
)

// Options is everything that mesh is asked for.
type Options struct {
	Draw     *render.Options // the model, the cameras and how they are drawn
	Out      string          // .ply or .glb
	Voxel    float64         // edge, in the capture's units; 0: two pixels at the median depth
	MaxDepth float64         // what is farther from a camera is left out, in the capture's units; 0: see mostDepth
	MinViews int             // views that must see what becomes part of the mesh
	Clusters int             // parts of the mesh that are kept
	// Triangles is how many are left of the mesh, a number or per cent; "": those that its shape and colours need
	Triangles string
	Replace   bool // Out
}

// NewOptions returns the defaults.
func NewOptions() *Options {
	draw := render.NewOptions()
	draw.Config.Smaller = "" // views are drawn as large as they are
	return &Options{Draw: draw, MinViews: 2, Clusters: 1000}
}

const (
	// leastFaces is how many triangles a part must have to be kept.
	leastFaces = 50
	// leastCover is how much of a pixel splats must cover for its depth to count.
	leastCover = 0.5
	// mostSpread is how wide the depths of a pixel's splats may be spread, in parts of its depth: where they are wider
	// it shows what is near and what is behind it.
	mostSpread = 0.15
	// mostDepth is how far from a camera the mesh goes, in medians of what photos show.
	mostDepth = 3
	// skyDistance is from which distance from the middle of the cameras on splats are the sky, in those of the median
	// splat. It has no surface, and as little of it as shines through one spreads the depths of a pixel.
	skyDistance = 20
	// shellFrom is half the least distance of a far shell, in the frame of drawing (package sky).
	shellFrom = 100
	// voxelPixels is how many pixels a voxel covers at the median depth.
	voxelPixels = 2
	// surveyed is how many views the median is taken of, at most.
	surveyed = 16
)

// check refuses what makes no sense before anything is read.
func (o *Options) check() error {
	ext := strings.ToLower(filepath.Ext(o.Out))
	switch {
	case ext != ".ply" && ext != ".glb":
		return fault.Usagef("name it as in scene.ply or scene.glb", "%s: meshes are written as .ply and .glb", o.Out)
	case o.Triangles != "" && cli.Part(o.Triangles, 100) == 0:
		return fault.Usagef("give a number of triangles, or per cent of them, as in 200000 or 25%",
			"%s: %q is neither a number nor per cent", fault.Named("triangles"), o.Triangles)
	case output.IsFolder(o.Out):
		return fault.Usagef("name the file in it, as in "+filepath.Join(o.Out, "scene.ply"), "%s is a folder", o.Out)
	}
	if err := output.RefuseSame(o.Out, o.Draw.File, o.Draw.Cameras); err != nil {
		return err
	}
	return output.RefuseExisting("", o.Replace, o.Out)
}

// meshing is a mesh that is being made.
type meshing struct {
	o        *Options
	console  *cli.Console
	ctx      context.Context
	renderer *pipeline.Renderer
	cams     []scene.Camera
	frame    scene.Frame // of drawing
	origin   [3]float64  // what the model's coordinates lack
	most     float32     // depth, in the frame of drawing
	voxel    float64     // likewise
	show     *meter.Meter
	drawn    int
	picture  picture.Picture
}

// Run makes the mesh and writes it.
func Run(console *cli.Console, o *Options) (err error) {
	missing := o.Draw.FindFiles()
	if err := o.check(); err != nil {
		return err
	}
	switch {
	case missing != nil:
		return missing
	case o.Draw.Cameras == "":
		return o.Draw.NoCameras()
	}
	defer func() { err = remedy.Memory(remedy.Ceiling(err, o.Draw.Device)) }()
	if err := models.LimitHeap(console, o.Draw.Device); err != nil {
		return err
	}
	release, err := output.Claim(filepath.Dir(o.Out), false)
	if err != nil {
		return err
	}
	defer release()
	splats, info, err := models.Open(console, o.Draw.File)
	if err != nil {
		return err
	}
	m := &meshing{o: o, console: console, origin: models.OriginOf(&info)}
	if err := m.readViews(&info); err != nil {
		return err
	}
	device, err := models.OpenDevice(console, o.Draw.Device)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, models.CloseDevice(device)) }()
	splats = withoutSky(splats.FromCapture(m.frame, m.origin))
	if err := models.CheckNear(o.Draw.Config.Near, splats, m.cams); err != nil {
		return err
	}
	ctx, stop := console.Interruptible(cli.Always("stopping; partial output is removed"))
	defer stop()
	m.ctx = ctx
	mesh, err := m.make(device, splats)
	var parts, made int
	if err == nil {
		parts, made, err = m.reduce(mesh)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return fault.ErrInterrupted
	case err != nil:
		return err
	}
	return m.write(mesh, parts, made)
}

// withoutSky leaves out the splats of the sky.
func withoutSky(s *scene.Splats) *scene.Splats {
	distances := make([]float64, s.N)
	for i := range distances {
		distances[i] = geom.Length([3]float64{float64(s.Means[3*i]), float64(s.Means[3*i+1]), float64(s.Means[3*i+2])})
	}
	far := skyDistance * scene.Median(beforeShell(distances))
	near := make([]int, 0, s.N)
	for i, d := range distances {
		if !(d > far) {
			near = append(near, i)
		}
	}
	if len(near) == s.N {
		return s
	}
	return s.Take(near)
}

// beforeShell returns a copy of the distances, less those of a far shell, which may have more splats than the scene: it
// is that far from cameras whose median distance is 1. If less than a quarter is left, the scene itself is far away.
func beforeShell(distances []float64) []float64 {
	near := slices.DeleteFunc(slices.Clone(distances), func(d float64) bool { return d > shellFrom })
	if 4*len(near) < len(distances) {
		return slices.Clone(distances)
	}
	return near
}

// readViews reads the cameras and how the model is drawn.
func (m *meshing) readViews(info *splatfile.Info) error {
	capture, err := render.ReadViews(m.console, m.o.Draw, m.origin)
	if err != nil {
		return err
	}
	if err := m.o.Draw.Look(m.console, info, capture.Synthetic); err != nil {
		return err
	}
	render.Normalise(capture, nil)
	m.cams, m.frame = capture.Cameras, capture.Frame
	if i := slices.IndexFunc(m.cams, func(c scene.Camera) bool { return c.Model != scene.Pinhole }); i >= 0 {
		return fault.WithHint(fmt.Errorf("%s: %w: it is drawn as a fisheye, whose depths have no plane",
			m.cams[i].Name, fault.ErrData), "train and mesh with "+fault.Setting("cameras")+
			" of a capture whose photos are read as pinhole ones")
	}
	return nil
}

// make draws the views and fuses them: once to find where surfaces are, and as often again as memory demands.
func (m *meshing) make(device *pipeline.Device, splats *scene.Splats) (mesh *surface.Mesh, err error) {
	config := m.o.Draw.Config
	config.Depth, config.Spread = true, true
	config.Stop = func() error { return m.ctx.Err() }
	if m.renderer, err = pipeline.NewRenderer(device, splats, m.cams, config); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.renderer.Close()) }()
	models.TellShared(m.console, m.renderer)
	m.console.Printf("%s, %s, %s of %s\n", device.Name(), cli.Count(splats.N, "splat"), cli.Count(len(m.cams), "view"),
		captured.Resolution(m.cams))
	if err := m.scale(); err != nil {
		return nil, err
	}
	m.show = meter.New(m.console.Stdout, meter.Auto, 0, 2*len(m.cams))
	m.show.Draws, m.show.Text = true, m.console.Follow(m.show)
	defer m.show.Interrupt()
	defer func() {
		if errors.Is(err, surface.ErrNoRoom) {
			err = fault.WithHint(err, fmt.Sprintf("give larger voxels (%s %.3g), or more RAM (%s)",
				fault.Setting("voxel"), 2*m.voxel/m.frame.Scale, fault.Setting("max-ram")))
		}
	}()
	survey := surface.NewSurvey(m.voxel, uint16(min(m.o.MinViews, len(m.cams))), device.RAM()/2)
	if err := m.each(m.cams, survey.Add); err != nil {
		return nil, err
	}
	if survey.Blocks() == 0 {
		return nil, m.nothing()
	}
	room := device.RAM() / 2
	passes := survey.Passes(room)
	m.show.Total = len(m.cams) * (1 + passes)
	if passes > 1 {
		m.console.Note(fmt.Sprintf("voxels do not fit %s at a time: all views are drawn for each of %d slabs; larger "+
			"voxels (%s) or more RAM (%s) make fewer", pipeline.BytesText(room), passes, fault.Setting("voxel"),
			fault.Setting("max-ram")))
	}
	return survey.Fuse(func(use func(v *surface.View) error) error { return m.each(m.cams, use) }, room)
}

// nothing is the error of a model that no view shows.
func (m *meshing) nothing() error {
	return fault.WithHint(fmt.Errorf("%w: no view shows a surface", fault.ErrData), "look at the model: "+
		fault.Command("view "+cli.Quoted(m.o.Draw.File))+"; "+fault.Setting("max-depth")+" may be too small")
}

// scale finds how far the mesh goes and how large voxels are, in the frame of drawing, from what some views show.
func (m *meshing) scale() error {
	m.most = math.MaxFloat32
	var sample, pixels []float64
	some := make([]scene.Camera, 0, surveyed)
	for i := range min(len(m.cams), surveyed) {
		some = append(some, m.cams[i*len(m.cams)/min(len(m.cams), surveyed)])
	}
	err := m.each(some, func(v *surface.View) error {
		for i := 0; i < len(v.Depth); i += 37 {
			if z := float64(v.Depth[i]); z > 0 {
				sample = append(sample, z)
				pixels = append(pixels, z/min(v.Camera.Fx, v.Camera.Fy))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(sample) == 0 {
		return m.nothing()
	}
	m.most = float32(mostDepth * scene.Median(sample))
	if m.o.MaxDepth > 0 {
		m.most = float32(m.o.MaxDepth * m.frame.Scale)
	}
	if m.voxel = voxelPixels * scene.Median(pixels); m.o.Voxel > 0 {
		m.voxel = m.o.Voxel * m.frame.Scale
	}
	m.console.Printf("voxels of %.3g, up to a depth of %.4g, in the capture's units\n", m.voxel/m.frame.Scale,
		float64(m.most)/m.frame.Scale)
	return nil
}

// each draws views and hands them on, one after the other.
func (m *meshing) each(cams []scene.Camera, use func(v *surface.View) error) error {
	p := &m.picture
	for _, c := range cams {
		if err := m.renderer.Add(c, p, func() {}); err != nil {
			return err
		}
		if err := m.renderer.Drain(); err != nil {
			return err
		}
		for i, z := range p.Depth {
			if cover := 1 - p.Color[4*i+3]; cover < leastCover || z > m.most || p.Spread[i] > mostSpread*z {
				p.Depth[i] = 0
			}
		}
		if err := use(&surface.View{Camera: c, Depth: p.Depth, Color: p.Color, Stride: 4}); err != nil {
			return err
		}
		if m.show != nil {
			m.drawn++
			m.show.Update(pipeline.Progress{Step: min(m.drawn, m.show.Total)})
		}
	}
	return nil
}

// reduce drops small parts of the mesh, and triangles that say little. It returns how many of both there were.
func (m *meshing) reduce(mesh *surface.Mesh) (parts, made int, err error) {
	parts = mesh.KeepClusters(m.o.Clusters, leastFaces)
	if made = len(mesh.Faces); made == 0 {
		return 0, 0, fault.WithHint(fmt.Errorf("%w: no part of the surface has %d triangles", fault.ErrData,
			leastFaces), "give smaller voxels: "+fault.Setting("voxel"))
	}
	most := cli.Part(m.o.Triangles, made)
	if err := mesh.Simplify(m.voxel, most, m.ctx.Err); err != nil {
		return 0, 0, err
	}
	if most > 0 && len(mesh.Faces) > most {
		m.console.Note(fmt.Sprintf("the mesh keeps %s: fewer would close its holes; larger voxels (%s) make fewer",
			cli.Count(len(mesh.Faces), "triangle"), fault.Setting("voxel")))
	}
	return parts, made, nil
}

// write writes the mesh in the frame of the model's file.
func (m *meshing) write(mesh *surface.Mesh, parts, made int) error {
	var by [3]float64
	for k := range 3 {
		by[k] = m.frame.Center[k] - m.origin[k]
	}
	mesh.Move(1/m.frame.Scale, by)
	meta := surface.Meta{Generator: "vksplat " + cli.Version()}
	if m.origin != [3]float64{} {
		meta.Origin = &m.origin
	}
	put := mesh.WritePLY
	if strings.EqualFold(filepath.Ext(m.o.Out), ".glb") {
		put = mesh.WriteGLB
	}
	err := atomicfile.Write(m.o.Out, func(w io.Writer) error { return put(w, meta) })
	if errors.Is(err, surface.ErrTooLarge) {
		err = fault.WithHint(err, "write .ply, or give larger voxels: "+fault.Setting("voxel"))
	}
	if err != nil {
		return err
	}
	kept := cli.Count(len(mesh.Faces), "triangle")
	if made > len(mesh.Faces) {
		kept += fmt.Sprintf(" (reduced from %d)", made)
	}
	m.console.Sayf("mesh: %s: %s, %s, from %s\n", m.o.Out, countOf(len(mesh.Vertices), "vertex", "vertices"), kept,
		cli.Count(parts, "part"))
	return nil
}

func countOf(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
