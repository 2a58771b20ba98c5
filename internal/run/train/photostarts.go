package train

import (
	"fmt"

	"vksplat/internal/parallel"
	"vksplat/internal/run/captured"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// displayGamma is about the power of light that photos' numbers show: twice the light is 2^(1/2.2) times the number.
const displayGamma = 2.2

// photoStarts says how the photos of cams were taken: how much light each got, by EXIF, and by which camera. A photo
// whose EXIF does not tell starts at the mean of the others. Photos of one camera, lens and focal length share their
// vignetting; without EXIF, those of one calibration do.
func photoStarts(cams []scene.Camera) []pipeline.PhotoStart {
	starts, names := make([]pipeline.PhotoStart, len(cams)), cameraNames(cams)
	known := make([]bool, len(cams))
	parallel.For(len(cams), func(i int) {
		starts[i].Exposure, known[i] = photo.Stops(cams[i].Path)
		starts[i].Exposure /= displayGamma
	})
	mean, n := 0.0, 0
	for i, s := range starts {
		if known[i] {
			mean += s.Exposure
			n++
		}
	}
	mean /= float64(max(n, 1))
	numbers := cameraNumbers(names)
	for i, name := range names {
		if starts[i].Exposure -= mean; !known[i] {
			starts[i].Exposure = 0
		}
		starts[i].Camera = numbers[name]
	}
	return starts
}

// cameraNumbers numbers the cameras of photos by their names, in the order in which they come first.
func cameraNumbers(names []string) map[string]int {
	numbers := map[string]int{}
	for _, name := range names {
		if _, met := numbers[name]; !met {
			numbers[name] = len(numbers)
		}
	}
	return numbers
}

// cameraNames are those of the photos of cams.
func cameraNames(cams []scene.Camera) []string {
	names := make([]string, len(cams))
	parallel.For(len(cams), func(i int) { names[i] = cameraName(&cams[i]) })
	return names
}

// lenses returns the vignetting of the cameras of photos that are held out; nil where it is not learnt, or no photo of
// the camera is trained on.
func (r *Run) lenses(cams []scene.Camera) ([]*pipeline.Vignetting, error) {
	list := make([]*pipeline.Vignetting, len(cams))
	learnt, err := r.Trainer.Vignettings()
	if err != nil || learnt == nil {
		return list, err
	}
	numbers := cameraNumbers(cameraNames(captured.Pick(r.Capture.Cameras, r.Train)))
	for i, name := range cameraNames(cams) {
		if number, known := numbers[name]; known {
			list[i] = &learnt[number]
		}
	}
	return list, nil
}

// cameraName tells cameras apart. Photos that are upright are turned against others of the same camera.
func cameraName(c *scene.Camera) string {
	if text := photo.TakenWith(c.Path); text != "" {
		return fmt.Sprint(text, c.Model, c.Width < c.Height)
	}
	return fmt.Sprint(c.Width, c.Height, c.Fx, c.Fy, c.Cx, c.Cy, c.Model)
}
