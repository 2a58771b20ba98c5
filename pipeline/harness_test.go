package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/pipeline/ref"
	"vksplat/scene"
	"vksplat/scene/splatfile"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// idle are the devices that no test holds: opening one and compiling its kernels takes as long as many steps.
var idle struct {
	sync.Mutex
	devices []*Device
}

// TestMain closes the devices that tests shared.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, d := range idle.devices {
		if err := d.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// openedBy returns the variables that a device is opened by and keeps.
func openedBy() [3]string {
	return [3]string{os.Getenv("VKSPLAT_LIMITS"), os.Getenv("LP_NUM_THREADS"), os.Getenv("VKSPLAT_VALIDATE")}
}

var usuallyOpenedBy = openedBy()

// testDevice lends the device that VKSPLAT_DEVICE names, or the best one, until t ends. Earlier tests may have had it:
// ownDevice is for what depends on its budget, on its peak of memory, or on kernels that were never compiled.
func testDevice(t testing.TB) *Device {
	t.Helper()
	if openedBy() != usuallyOpenedBy {
		return ownDevice(t)
	}
	idle.Lock()
	var d *Device
	if n := len(idle.devices); n > 0 {
		d, idle.devices = idle.devices[n-1], idle.devices[:n-1]
	}
	idle.Unlock()
	if d == nil {
		d = openDevice(t)
	}
	t.Cleanup(func() {
		checkDevice(t, d)
		if t.Failed() {
			closeDevice(t, d)
			return
		}
		idle.Lock()
		defer idle.Unlock()
		idle.devices = append(idle.devices, d)
	})
	return d
}

// ownDevice opens such a device for t alone, as the environment has it now.
func ownDevice(t testing.TB) *Device {
	t.Helper()
	d := openDevice(t)
	t.Cleanup(func() {
		checkDevice(t, d)
		closeDevice(t, d)
	})
	return d
}

func openDevice(t testing.TB) *Device {
	t.Helper()
	d, err := OpenDevice(DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")})
	if err != nil {
		t.Fatal(err, fault.Hint(err))
	}
	return d
}

// checkDevice fails a test that left buffers on the device, or that the validation layer complained of.
func checkDevice(t testing.TB, d *Device) {
	t.Helper()
	if s := d.dev.Stats(); s.Buffers != 0 || s.SharedBytes != 0 {
		t.Errorf("%d buffers and %d shared bytes are left", s.Buffers, s.SharedBytes)
	}
	for _, m := range d.ValidationMessages() {
		t.Error("validation:", m)
	}
}

// closeDevice closes the device. The layer may complain of that, too.
func closeDevice(t testing.TB, d *Device) {
	t.Helper()
	said := len(d.ValidationMessages())
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, m := range d.ValidationMessages()[said:] {
		t.Error("validation:", m)
	}
}

// checkpointTrainer trains checkpointScene, with its configuration changed where change is not nil.
func checkpointTrainer(t testing.TB, d *Device, change func(*recipe.Config)) (*Trainer, []TrainView, recipe.Config) {
	t.Helper()
	views, init, scale, cfg, run := checkpointScene(t)
	if change != nil {
		change(&cfg)
	}
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	t.Cleanup(func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	})
	tr.SetRun(run)
	return tr, views, cfg
}

// splatsOf converts reference parameters to a host model.
func splatsOf(p *ref.Params[float32]) *scene.Splats {
	s := scene.NewSplats(p.N, p.Degree)
	to := s.Tensors()
	for k, t := range p.Tensors() {
		copy(to[k].Data, t.Data)
	}
	return s
}

// viewEngine makes an engine for one view that runs no units, and memory for its photo. free frees both.
func viewEngine(t testing.TB, d *Device, degree int, c scene.Camera, floats bool) (e *engine, free func()) {
	t.Helper()
	shape, err := newSetup(d.dev, degree, []scene.Camera{c}, nil)
	if err != nil {
		t.Fatal(err)
	}
	shape.compare.floats = floats
	e = newEngine(shape)
	if err := e.allocate(1); err != nil {
		t.Fatal(errors.Join(err, e.close()))
	}
	target, err := vk.Make[uint32](d.dev, vk.DeviceLocal, e.setup.targetWords(), "target")
	if err != nil {
		t.Fatal(errors.Join(err, e.close()))
	}
	e.setup.target = target
	return e, func() {
		t.Helper()
		if err := errors.Join(e.close(), d.dev.Free(target.View)); err != nil {
			t.Error(err)
		}
	}
}

// cameraOf converts a reference view to a camera.
func cameraOf(v *ref.View[float32]) scene.Camera {
	c := scene.Camera{Width: v.Width, Height: v.Height, Fx: float64(v.Fx), Fy: float64(v.Fy), Cx: float64(v.Cx),
		Cy: float64(v.Cy)}
	if v.Fisheye {
		c.Model = scene.Fisheye
	}
	for i := range 9 {
		c.R[i] = float64(v.R[i])
	}
	for i := range 3 {
		c.T[i] = float64(v.T[i])
	}
	return c
}

// gradients is what the device computes for one view and given gradients of its pixels.
type gradients struct {
	shapes     [][4]float32 // [N][2]
	depthKeys  []uint32
	render     [][4]float32
	vProjected []layout.ProjectedGrad
	vAbsMean2D [][2]float32  // with absgrad
	params     *scene.Splats // dL/d(parameter)
	report     layout.Report
}

// runBackward runs the passes of a step with vRender in place of the loss, and project_bwd in place of the optimiser.
func runBackward(t testing.TB, d *Device, p *ref.Params[float32], v *ref.View[float32], vRender [][4]float32,
	bands int) *gradients {
	t.Helper()
	return runBackwardOf(t, d, p, v, vRender, bands, strategy3DGS{})
}

func runBackwardOf(t testing.TB, d *Device, p *ref.Params[float32], v *ref.View[float32], vRender [][4]float32,
	bands int, how strategy) *gradients {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	e, free := viewEngine(t, d, p.Degree, cameraOf(v), false)
	defer free()
	e.setup.strategy = how
	e.setup.hooks.capacities = 16
	must(e.load(splatsOf(p), bands))
	f := e.programs.frames[0]
	c := cameraOf(v)
	viewParams(&f.hostParams.View, &c, float64(v.Near), v.SHDegree, v.Antialiased, v.Background)

	n, pixels := e.setup.model.capacity(), e.setup.views.maxPixels
	up, err := vk.Make[[4]float32](d.dev, vk.Upload, pixels, "v_render")
	must(err)
	copy(vk.Host(up), vRender)
	back := map[string]vk.View{}
	read := func(name string, size int64) vk.View {
		b, err := d.dev.Alloc(vk.Readback, size, name)
		must(err)
		back[name] = b
		return b
	}
	defer func() {
		d.dev.Free(up.View)
		for _, b := range back {
			d.dev.Free(b)
		}
	}()

	r := vk.NewRecorder(d.dev)
	w := &view{s: e.setup, size: e.setup.views, r: r, f: f}
	w.begin()
	w.project()
	w.sortDepth()
	w.vShown = vk.ScratchOf[[4]float32](r, "v_render", pixels)
	r.Copy(w.vShown.View, up.View)
	scratch(r, &w.vProjected, "v_projected", n)
	r.Fill(w.vProjected.View, 0)
	for band := range e.setup.bands {
		w.makeIsects(band)
		w.rasterize(band, true)
		w.rasterizeBwd()
		w.reduceSlots(band)
	}
	grads := vk.ScratchOf[float32](r, "v_params", e.setup.model.NParams*e.setup.model.capacity())
	r.Fill(grads.View, 0)
	for _, c := range e.setup.model.chunks {
		r.Dispatch(&shaders.ProjectBwd{
			Params: f.params, Counters: e.setup.counters, DepthKeys: w.depthKeys, VProjected: w.vProjected,
			Paints: w.paints, Chunk: c.Slice,
			VParams: grads.At(e.setup.model.NParams*c.first, e.setup.model.NParams*c.splats),
			Push:    shaders.ProjectBwdPush{FirstId: uint32(c.first), ChunkSplats: uint32(c.splats)},
		}, vk.Items(c.splats, 256))
	}
	w.finish(false)
	if how.variants().absgrad {
		r.Copy(read("v_abs_mean2d", w.vBeside.Size()), w.vBeside.View)
	}
	for name, x := range map[string]vk.View{"shapes": w.shapes.View, "depth_keys": w.depthKeys.View,
		"render": w.render.View, "v_projected": w.vProjected.View, "v_params": grads.View} {
		r.Copy(read(name, x.Size()), x)
	}
	must(r.Err())
	prog, err := r.Build("backward", e.programs.pool, vk.BuildOptions{})
	must(err)
	defer prog.Close()
	s := d.dev.NewSubmission()
	s.Add(prog)
	ticket, err := d.dev.Submit(s)
	must(err)
	must(d.dev.Wait(ticket))

	g := &gradients{
		shapes:    append([][4]float32(nil), vk.Host(vk.Cast[[4]float32](back["shapes"]))[:2*p.N]...),
		depthKeys: append([]uint32(nil), vk.Host(vk.Cast[uint32](back["depth_keys"]))[:p.N]...),
		render:    append([][4]float32(nil), vk.Host(vk.Cast[[4]float32](back["render"]))...),
		vProjected: append([]layout.ProjectedGrad(nil),
			vk.Host(vk.Cast[layout.ProjectedGrad](back["v_projected"]))[:p.N]...),
		params: scene.NewSplats(p.N, p.Degree),
		report: *f.hostReport,
	}
	if how.variants().absgrad {
		g.vAbsMean2D = append(g.vAbsMean2D, vk.Host(vk.Cast[[2]float32](back["v_abs_mean2d"]))[:p.N]...)
	}
	takeRows(g.params, e.setup.model, vk.Host(vk.Cast[float32](back["v_params"])))
	if g.report.Failed != 0 {
		t.Fatalf("the view failed: %+v", g.report)
	}
	return g
}

// takeRows sorts the rows of all chunks into splats.
func takeRows(s *scene.Splats, m *model, rows []float32) {
	for _, c := range m.chunks {
		for i := c.first; i < min(c.first+c.splats, s.N); i++ {
			for row := range m.NParams {
				*paramsOf(s).At(row, i) = rows[m.NParams*c.first+row*c.splats+i-c.first]
			}
		}
	}
}

// TrainView is a photo to train on with its camera.
type TrainView struct {
	Camera scene.Camera
	Image  scene.Image
}

// trainOn is NewTrainer for photos in memory.
func trainOn(d *Device, views []TrainView, init *scene.Splats, sceneScale float64, cfg recipe.Config) (*Trainer,
	error) {
	return trainWith(d, views, init, sceneScale, cfg, TrainerOptions{})
}

// trainWith is trainOn with options.
func trainWith(d *Device, views []TrainView, init *scene.Splats, sceneScale float64, cfg recipe.Config,
	o TrainerOptions) (*Trainer, error) {
	cams, photos := splitViews(views)
	o.Depths = depthsOf(cams)
	return NewTrainer(d, cams, photos, init, sceneScale, cfg, o)
}

// trainSet makes what a training is made from: views, first splats, the scale of the scene and settings.
type trainSet func(testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config)

// begun returns a trainer of a set, whose settings change changes unless it is nil.
func begun(t testing.TB, d *Device, of trainSet, change func(*recipe.Config), o TrainerOptions) *Trainer {
	t.Helper()
	views, init, scale, cfg := of(t)
	if change != nil {
		change(&cfg)
	}
	tr := must.Get(trainWith(d, views, init, scale, cfg, o))(t)
	return tr
}

// endHash trains to the end and returns the hash of the model.
func endHash(t testing.TB, tr *Trainer) string {
	t.Helper()
	return modelHash(splatsAfter(t, tr, tr.run.cfg.Iterations))
}

// rowsHash is a hash of the rows of a table.
func rowsHash[T any](rows []T) string {
	h := sha256.New()
	for i := range rows {
		h.Write(vk.Bytes(&rows[i]))
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}

// larger has buffers start out larger than they need to be.
var larger = TrainerOptions{hooks: testHooks{capacities: 4}}

// inBands has views drawn in so many bands until t ends.
func inBands(t *testing.T, n int) { t.Setenv("VKSPLAT_BANDS", strconv.Itoa(n)) }

// fixViews has the steps train on given views, of which the last repeats.
func fixViews(o *viewOrder, views ...int) {
	o.shuffle = func(_ uint64, epoch, n int) (list []int) {
		for p := range n {
			list = append(list, views[min(epoch*n+p, len(views)-1)])
		}
		return list
	}
}

// depthsOf says of the views of promiseScene that space is empty up to a depth at which some of its splats are
// floaters.
func depthsOf(cams []scene.Camera) []scene.Depths {
	return slices.Repeat([]scene.Depths{{Empty: 3.8, Median: 100}}, len(cams))
}

// splitViews separates cameras and photos.
func splitViews(views []TrainView) (cams []scene.Camera, photos photos.Images) {
	for _, v := range views {
		cams, photos = append(cams, v.Camera), append(photos, v.Image)
	}
	return cams, photos
}

// resumeOn is NewTrainerFrom for photos in memory.
func resumeOn(d *Device, views []TrainView, c *checkpoint.File, cfg recipe.Config) (*Trainer, error) {
	cams, photos := splitViews(views)
	return NewTrainerFrom(d, cams, photos, c, cfg, TrainerOptions{Depths: depthsOf(cams)})
}

// Splats returns the whole model, in the training frame.
func (t *Trainer) Splats() (s *scene.Splats, err error) {
	s = scene.NewSplats(t.report.progress.Splats, t.shards.first.e.setup.model.Degree)
	return s, t.ReadSplats(gathered(s))
}

// downloaded returns the first n splats of m, which come at most so many at once.
func downloaded(m *model, n, most int) (*scene.Splats, error) {
	s := scene.NewSplats(n, m.Degree)
	return s, m.read(n, most, gathered(s))
}

// gathered puts the pieces of a model together in s.
func gathered(s *scene.Splats) func(piece *scene.Splats) error {
	done := 0
	return func(p *scene.Splats) error {
		into := s.Slice(done, done+p.N)
		copy(into.Means, p.Means)
		copy(into.Quats, p.Quats)
		copy(into.LogScales, p.LogScales)
		copy(into.LogitOpacities, p.LogitOpacities)
		copy(into.SH, p.SH)
		done += p.N
		return nil
	}
}

// modelIn reads the model of a checkpoint. The frame of checkpointScene is the capture's.
func modelIn(t testing.TB, path string) *scene.Splats {
	t.Helper()
	m := must.Get(splatfile.Open(path))(t)
	defer m.Close() // only read
	s := must.Get(splatfile.All(m))(t)
	return s
}

// paramsOf returns the parameters of s: not a copy.
func paramsOf(s *scene.Splats) *ref.Params[float32] {
	return &ref.Params[float32]{N: s.N, Degree: s.Degree, Means: s.Means, Quats: s.Quats, LogScales: s.LogScales,
		LogitOpacities: s.LogitOpacities, SH: s.SH}
}

// load makes s the model and chooses the first capacities.
func (e *engine) load(s *scene.Splats, bands int) error {
	return errors.Join(e.setup.model.upload(s), e.ready(s.N, bands))
}

// Run trains to the end.
func (t *Trainer) Run(ctx context.Context, progress func(Progress)) error {
	return t.RunTo(ctx, t.run.cfg.Iterations, progress)
}
