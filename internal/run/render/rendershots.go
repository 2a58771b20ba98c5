package render

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/models"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/splatfile"
	"vksplat/scene/trajectory"
)

// shot is a picture that is to be drawn.
type shot struct {
	camera scene.Camera
	name   string // of its file, relative, without the suffix of its format
	number int    // among all pictures
}

// FindFiles makes of train's folder the model of the step that is asked for, or the newest one, and, unless others are
// asked for, its cameras.
func (o *Options) FindFiles() (err error) {
	out := o.File
	if o.File, err = splatfile.FindStep(out, o.Iteration); err != nil {
		return plans.OfPlan(out, err)
	}
	if o.File == out {
		return nil
	}
	o.run = out
	if cameras := filepath.Join(out, "cameras.json"); o.Cameras == "" && output.IsFile(cameras) {
		o.Cameras = cameras
	}
	return nil
}

// NoCameras is the error of a render that nothing says the views of.
func (o *Options) NoCameras() error {
	if o.run != "" {
		return fault.Usagef("give the capture that it was trained on: "+fault.Setting("cameras")+" SCENE",
			"%s has no cameras.json to render from", o.run)
	}
	return fault.Usagef("give "+fault.Setting("cameras")+
		" SCENE or cameras.json, or train's folder in place of the model",
		"%s is required for the views of a file", fault.Setting("cameras"))
}

// defaultCamera is the lens for trajectory files without one if there is no photo.
var defaultCamera = trajectory.WithFOV(scene.Camera{Name: "camera", Width: 1280, Height: 720,
	R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}, math.Pi/3)

// readCameras reads the cameras, in the capture's own frame; origin is the model's. With a trajectory from a file alone
// there may be none.
func readCameras(console *cli.Console, o *Options, origin [3]float64) (*scene.Capture, error) {
	if o.Cameras == "" {
		if !o.FromFile() {
			return nil, o.NoCameras()
		}
		return &scene.Capture{Frame: scene.Identity()}, nil
	}
	return ReadViews(console, o, origin)
}

// FromFile says whether the way is in a file.
func (o *Options) FromFile() bool {
	return o.Trajectory != "" && !slices.Contains(trajectory.Names(), o.Trajectory)
}

// flight reads the way of --trajectory FILE, if that is asked for, in the capture's own frame.
func (o *Options) flight(c *scene.Capture, origin [3]float64) ([]scene.Camera, error) {
	if !o.FromFile() {
		return nil, nil
	}
	like := defaultCamera
	if len(c.Cameras) > 0 {
		like = c.Cameras[0]
	}
	t, err := trajectory.Read(o.Trajectory, like, o.Dataparser)
	if meant := cli.DidYouMean(o.Trajectory, trajectory.Names(), ""); meant != "" && errors.Is(err, os.ErrNotExist) {
		err = fault.WithHint(err, meant+" Other names are those of files, see docs/render.md")
	}
	if err != nil {
		return nil, err
	}
	if t.FPS > 0 && !o.Given("fps") {
		o.Fps = t.FPS
	}
	cams := t.Frames
	if t.Keys != nil {
		first, last := t.Keys[0].Time, t.Keys[len(t.Keys)-1].Time
		if o.Given("seconds") {
			last = min(last, first+o.Seconds)
		}
		if (last-first)*o.Fps > 1e6 {
			return nil, fault.Usagef("up to a million pictures are allowed", "%s: %g seconds at %g pictures a second",
				o.Trajectory, last-first, o.Fps)
		}
		times := make([]float64, 1+int(math.Floor((last-first)*o.Fps+1e-6)))
		for i := range times {
			times[i] = first + float64(i)/o.Fps
		}
		cams = trajectory.Fly(t.Keys, times)
	}
	if t.OfModel {
		cams = captured.Shifted(cams, [3]float64{-origin[0], -origin[1], -origin[2]})
	}
	return cams, nil
}

// shots lists the pictures that are asked for, in the training frame, into which c has been moved, with the splats.
// flown are those of --trajectory FILE.
func (o *Options) shots(c *scene.Capture, flown []scene.Camera, splats *scene.Splats) ([]shot, error) {
	cams, named := c.Cameras, true
	switch {
	case o.Trajectory == "":
		if o.Split != "" {
			cams = o.splitViews(c)
		}
		if len(cams) == 0 {
			return nil, fault.WithHint(fmt.Errorf("%s: %w: no photo is of the split %s", o.Cameras, fault.ErrData,
				o.Split), "photos are held out by "+fault.Command("train --eval"))
		}
	case o.FromFile():
		cams, named = flown, false
	default:
		low, high := depthRange(c.Cameras, splats)
		way, err := trajectory.Make(o.Trajectory, c.Cameras, o.flightPictures(), low, high)
		if err != nil {
			return nil, err
		}
		cams, named = way, false
	}
	if err := models.CheckNear(o.Config.Near, splats, cams); err != nil { // whichever of them are drawn
		return nil, err
	}
	names := captured.PictureNames(cams)
	chosen, err := o.Frames.pick(len(cams))
	if err != nil {
		return nil, err
	}
	list := make([]shot, 0, len(chosen))
	for _, i := range chosen {
		s := shot{camera: o.framed(cams[i]), number: o.Start + i}
		switch {
		case o.single != "":
			s.name = strings.TrimSuffix(filepath.Base(o.single), filepath.Ext(o.single))
		case o.Name != "":
			s.name = fmt.Sprintf(o.Name, s.number)
		case named:
			s.name = strings.TrimSuffix(names[i], output.PictureSuffix)
		default:
			s.name = fmt.Sprintf(framePattern, s.number)
		}
		if s.camera.Name == "" || !named {
			s.camera.Name = s.name
		}
		list = append(list, s)
	}
	return list, nil
}

// flightPictures is how many pictures a trajectory has that is made of the cameras.
func (o *Options) flightPictures() int { return max(1, int(math.Round(o.Seconds*o.Fps))) }

// uncoveredShare is how much of a way around a scene may be where no photo was taken.
const uncoveredShare = 0.25

// warnUncovered warns of a way around a scene that was photographed from one side: it flies where the model was never
// looked at from.
func warnUncovered(console *cli.Console, o *Options, c *scene.Capture, shots []shot) {
	if o.Trajectory != trajectory.Ellipse && o.Trajectory != trajectory.Orbit {
		return
	}
	if n := trajectory.Uncovered(camerasOf(shots), c.Cameras); float64(n) > uncoveredShare*float64(len(shots)) {
		console.Warn(fmt.Sprintf("%s %s: %d of %s look from where no photo was taken; %s and %s stay "+
			"near the photos", fault.Setting("trajectory"), o.Trajectory, n, cli.Count(len(shots), "picture"),
			trajectory.Interp, trajectory.Spiral))
	}
}

// framePattern names the pictures of trajectories.
const framePattern = "frame_%05d"

// splitViews returns the cameras of the split that is asked for.
func (o *Options) splitViews(c *scene.Capture) []scene.Camera {
	train, test := c.Split(0)
	if o.Split == inria.SplitTest {
		return captured.Pick(c.Cameras, test)
	}
	return captured.Pick(c.Cameras, train)
}

// measuredViews returns the photos that per_view.json beside a cameras.json has scores of, which are those that were
// held out: INRIA's cameras.json does not say, nor did ours once. It is nil where there is no such file.
func measuredViews(dir string) map[string]bool {
	var steps map[string]struct{ PSNR map[string]float64 }
	if strictjson.ReadFile(filepath.Join(dir, "per_view.json"), &steps) != nil {
		return nil
	}
	held := map[string]bool{}
	for method, views := range steps {
		if strings.HasSuffix(method, "_"+evaluate.SplitTrain) { // of eval --split train
			continue
		}
		for name := range views.PSNR {
			held[name] = true
		}
	}
	return held
}

// framed gives the camera the size and the field of view that are asked for.
func (o *Options) framed(c scene.Camera) scene.Camera {
	if o.Size != (PixelsFlag{}) && o.Projection == ProjectPerspective {
		c = trajectory.Framed(c, o.Size.Width, o.Size.Height)
	}
	if o.Given("fov") {
		c = trajectory.WithFOV(c, o.Fov*math.Pi/180)
	}
	return c
}

// depthShare is the share of splats that are nearer than the range of depths, and of those that are farther.
const depthShare = 0.05

// depthRange returns depths between which most splats lie that the middle camera sees.
func depthRange(cams []scene.Camera, s *scene.Splats) (low, high float64) {
	c := cams[len(cams)/2]
	var depths []float64
	for i := range s.N {
		p := c.ToCamera([3]float64{float64(s.Means[3*i]), float64(s.Means[3*i+1]), float64(s.Means[3*i+2])})
		x, y := p[0]/p[2]*c.Fx+c.Cx, p[1]/p[2]*c.Fy+c.Cy
		if p[2] > 0 && x > 0 && y > 0 && x < float64(c.Width) && y < float64(c.Height) {
			depths = append(depths, p[2])
		}
	}
	if len(depths) == 0 {
		return 1, 2 // about the distance of the cameras from each other
	}
	slices.Sort(depths)
	at := func(share float64) float64 { return depths[int(share*float64(len(depths)-1))] }
	return at(depthShare), at(1 - depthShare)
}
