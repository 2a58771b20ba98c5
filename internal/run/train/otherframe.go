package train

import (
	"fmt"
	"path/filepath"

	"vksplat/scene"
	"vksplat/scene/inspect"
)

// inFrame says in hints what frame files of points must be in.
const inFrame = "must be in the frame of the capture's cameras: the same origin, axes and unit"

// mostAsked is about how many splats of a model are asked whether cameras see them.
const mostAsked = 200_000

// warnInitFrame warns of the file that training begins with, if what it holds is not where the cameras look. The
// capture, with its own points, and the splats are in the training frame. A block's cameras see a part of a city.
func (d *dataset) warnInitFrame(init *scene.Splats) {
	stride := 1 + init.N/mostAsked
	points := make([]scene.Point, 0, init.N/stride+1)
	for i := 0; i < init.N; i += stride {
		m := init.Means[3*i:]
		points = append(points, scene.Point{Pos: [3]float64{float64(m[0]), float64(m[1]), float64(m[2])}})
	}
	said := inspect.OtherScale(d.training.Cameras, d.training.Points, points)
	switch share := inspect.InView(d.training.Cameras, points); {
	case share == 0:
		said = "are in view of no camera"
	case said == "" && share < 0.5 && d.Divided == nil:
		said = fmt.Sprintf("are out of view of all cameras but for %.2g %%", 100*share)
	}
	if said != "" {
		d.warnLater(fmt.Sprintf("the points of %s %s: the file %s", filepath.Base(d.Init.File), said, inFrame))
	}
}
