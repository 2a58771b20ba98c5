package frames

import (
	"math"
	"slices"
	"time"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/view"
)

// WarnReadable warns of a server whose answers others can read.
func WarnReadable(console *cli.Console, s *view.Server) {
	if s.Public() && !s.Encrypted() {
		console.Warn("traffic is not encrypted: anyone on the network can read it, and the token in the address; " +
			"encrypt with " +
			fault.Setting("tls-cert") + " and " + fault.Setting("tls-key") + ", or leave out " + fault.Setting("host") +
			" and use: ssh -L")
	}
}

// frameShare is how many times as long as the device did nothing for the training because of a frame,
// pipeline.Interludes.Lost, training goes on before the next: a twelfth of the time is the viewer's, and what Lost does
// not see, as that a wait's end is noticed late, has room below a tenth.
const frameShare = 11

const Quality = 85

func LiveCamera(c *scene.Camera, held bool) view.LiveCamera {
	tangent := math.Tan(min(math.Atan(float64(c.Height)/(2*c.Fy)), 1.2)) // a fisheye's is an angle rather
	return view.LiveCamera{Name: c.Name, Held: held, Rotation: c.R, Position: c.Center(), Tangent: tangent,
		Width: c.Width, Height: c.Height}
}

// Picture makes the picture that browsers get of a camera's frame, which it may change; photo is that of ModeError.
func Picture(mode view.Mode, rgb []float32, c *scene.Camera, shot scene.Image) scene.Image {
	switch mode {
	case view.ModeDepth:
		return depthPicture(rgb, c.Width, c.Height)
	case view.ModeError:
		return errorPicture(rgb, c.Width, c.Height, shot)
	}
	return photo.FromFloats(rgb, c.Width, c.Height)
}

// Pace makes frames small enough for the device, and says when the next may be drawn while training goes on.
type Pace struct {
	// what a pixel takes, times a thousand; 0: not known. Frames while nothing moves count apart: they are larger, and
	// what each frame takes whatever its size matters less.
	pixel map[bool]time.Duration
	ended time.Time     // when the last frame was drawn
	lost  time.Duration // what was lost to frames, and what else was done, before it
}

// Wait is how long to wait for the next frame, when lost is what was lost by now.
func (p *Pace) Wait(lost time.Duration) time.Duration {
	if p.ended.IsZero() {
		return 0
	}
	return time.Until(p.ended.Add(frameShare * (lost - p.lost)))
}

const (
	frameTime     = 50 * time.Millisecond  // of a frame while training goes on: with frameShare, two a second
	frameTimeHeld = 300 * time.Millisecond // of one while it is paused
	frameStill    = 2 * time.Second        // of one while nothing moves, either
	leastPixels   = 240 * 180
)

// Fit reduces a query's size to what can be drawn in time.
func (p *Pace) Fit(q *view.FrameQuery, held bool) {
	limit := frameTime
	if held && q.Still {
		limit = frameStill
	} else if held {
		limit = frameTimeHeld
	}
	pixel := p.pixel[q.Still]
	if pixel == 0 {
		return
	}
	most := max(leastPixels, int(1000*limit/pixel))
	if n := q.Width * q.Height; n > most {
		f := math.Sqrt(float64(most) / float64(n))
		q.Width, q.Height = max(1, int(f*float64(q.Width))), max(1, int(f*float64(q.Height)))
	}
}

// Observe takes in a frame that has just been drawn, since begin, before which so much had been lost.
func (p *Pace) Observe(pixels int, still bool, begin time.Time, lost time.Duration) {
	p.ended, p.lost = time.Now(), lost
	pixel := 1000 * p.ended.Sub(begin) / time.Duration(pixels)
	if p.pixel == nil {
		p.pixel = map[bool]time.Duration{}
	}
	if before := p.pixel[still]; before > 0 {
		pixel = before + (pixel-before)/4
	}
	p.pixel[still] = pixel
}

var Looks = map[view.Mode]pipeline.Look{view.ModeDepth: pipeline.LookDepth, view.ModeCentres: pipeline.LookCenters,
	view.ModeEllipsoids: pipeline.LookEllipsoids}

// Camera is what a frame is drawn by: the camera of one of these photos, as large as the frame at most, or the one that
// the query describes.
func Camera(cameras []scene.Camera, q *view.FrameQuery) scene.Camera {
	if q.Camera >= 0 {
		c := cameras[q.Camera]
		f := min(1, float64(q.Width)/float64(c.Width), float64(q.Height)/float64(c.Height))
		return c.Rescaled(max(1, int(math.Round(f*float64(c.Width)))), max(1, int(math.Round(f*float64(c.Height)))))
	}
	focal := float64(q.Height) / 2 / q.Tangent
	c := scene.Camera{Name: "viewer", Width: q.Width, Height: q.Height, Fx: focal, Fy: focal, Cx: float64(q.Width) / 2,
		Cy: float64(q.Height) / 2, R: q.Rotation}
	for i := range 3 {
		for k := range 3 {
			c.T[i] -= c.R[3*i+k] * q.Position[k]
		}
	}
	return c
}

// ramp is a scale of colours from dark to bright, which also those who see no red or green can read (after matplotlib's
// viridis).
var ramp = [][3]float32{{0.267, 0.005, 0.329}, {0.231, 0.318, 0.545}, {0.129, 0.569, 0.549}, {0.369, 0.788, 0.384},
	{0.993, 0.906, 0.144}}

// rampColor is the colour of x from 0 to 1; what lies outside has the ends'.
func rampColor(x float32) (c [3]float32) {
	x = min(max(x, 0), 1) * float32(len(ramp)-1)
	i := min(int(x), len(ramp)-2)
	t := x - float32(i)
	for k := range c {
		c[k] = ramp[i][k]*(1-t) + ramp[i+1][k]*t
	}
	return c
}

// leastCover is the sum of weights below which a pixel has no depth.
const leastCover = 0.05

// depthPicture draws mean depths, near ones bright, between those of the nearest and the farthest hundredth of the
// pixels; what covers nothing is black.
func depthPicture(sums []float32, width, height int) scene.Image {
	logs := make([]float32, width*height)
	var known []float32
	for i := range logs {
		depth, weight := sums[3*i], sums[3*i+1]
		if !(weight > leastCover && depth > 0) {
			logs[i] = float32(math.NaN())
			continue
		}
		logs[i] = float32(math.Log(float64(depth / weight)))
		if i%16 == 0 {
			known = append(known, logs[i])
		}
	}
	var low, high float32
	if len(known) > 0 {
		slices.Sort(known)
		low, high = known[len(known)/100], known[len(known)-1-len(known)/100]
	}
	for i, x := range logs {
		var c [3]float32
		if x == x {
			c = rampColor(1 - (x-low)/max(high-low, 1e-6))
		}
		copy(sums[3*i:], c[:])
	}
	return photo.FromFloats(sums, width, height)
}

// errorCeiling is the difference that has the brightest colour, of 0 to 1.
const errorCeiling = 0.25

// errorPicture draws how far a picture is from its photo: the mean over the channels.
func errorPicture(rgb []float32, width, height int, shot scene.Image) scene.Image {
	shot = photo.Fit(shot, max(width, height))
	for y := range height {
		for x := range width {
			i := 3 * (y*width + x)
			at := 4 * (y*shot.Height/height*shot.Width + x*shot.Width/width)
			var sum float32
			for k := range 3 {
				d := min(max(rgb[i+k], 0), 1) - float32(shot.Pix[at+k])/255
				sum += max(d, -d)
			}
			c := rampColor(sum / 3 / errorCeiling)
			copy(rgb[i:], c[:])
		}
	}
	return photo.FromFloats(rgb, width, height)
}
