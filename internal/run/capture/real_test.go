//go:build unix

package capture

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"vksplat/internal/parallel"
	"vksplat/internal/run/output"
	"vksplat/scene/colmap"
)

type vec [3]float64

func (a vec) plus(b vec, s float64) vec { return vec{a[0] + s*b[0], a[1] + s*b[1], a[2] + s*b[2]} }
func (a vec) dot(b vec) float64         { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
func (a vec) unit() vec                 { return vec{}.plus(a, 1/math.Sqrt(a.dot(a))) }
func (a vec) cross(b vec) vec {
	return vec{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

// pebbles is a grey of 0 to 1 that differs everywhere in space: noise of three sizes. The scenes of package synth have
// walls that repeat themselves, whose matches are ambiguous.
func pebbles(p vec) float64 {
	sum := 0.0
	for octave, size := range []float64{4, 11, 29} {
		var cell [3]int
		var part vec
		for k := range 3 {
			f := math.Floor(p[k] * size)
			cell[k], part[k] = int(f), p[k]*size-f
		}
		for corner := range 8 {
			weight, h := 1.0, uint32(octave+1)*0x9e3779b9
			for k := range 3 {
				bit := corner >> k & 1
				weight *= 1 - math.Abs(float64(bit)-part[k])
				h = (h ^ uint32(cell[k]+bit)) * 0x85ebca6b
				h ^= h >> 13
			}
			sum += weight * float64(h%1024) / 1024
		}
	}
	return min(max((sum/3-0.5)*2.2+0.5, 0), 1)
}

// shade is what a ray meets: the floor, a wall behind, or one of some balls.
func shade(from, ray vec) float64 {
	nearest := math.Inf(1)
	meet := func(t float64) {
		if t > 1e-6 {
			nearest = min(nearest, t)
		}
	}
	meet(-from[2] / ray[2])
	meet((3 - from[1]) / ray[1])
	for _, ball := range []vec{{-0.9, 0.2, 0.5}, {0.7, -0.3, 0.4}, {0.1, 1.2, 0.8}} {
		to := from.plus(ball, -1)
		half, rest := to.dot(ray), to.dot(to)-ball[2]*ball[2]
		if root := half*half - rest; root > 0 {
			meet(-half - math.Sqrt(root))
		}
	}
	if math.IsInf(nearest, 1) || nearest > 20 {
		return 0.5
	}
	return pebbles(from.plus(ray, nearest))
}

// walk is where photo i of n is taken from: an arc around the balls that rises.
func walk(i, n int) vec {
	a := (float64(i)/float64(n-1) - 0.5) * 1.4
	return vec{4 * math.Sin(a), -4 * math.Cos(a), 1.4 + 0.5*math.Sin(3*a)}
}

// takePicture draws the scene from a place.
func takePicture(from vec, w, h int) *image.Gray {
	ahead := vec{0, 0.2, 0.5}.plus(from, -1).unit()
	right := ahead.cross(vec{0, 0, 1}).unit()
	down := ahead.cross(right)
	img := image.NewGray(image.Rect(0, 0, w, h))
	focal := 1.1 * float64(w)
	for y := range h {
		for x := range w {
			sum := 0.0
			for s := range 4 { // rays a pixel
				u := (float64(x) + 0.25 + 0.5*float64(s%2) - float64(w)/2) / focal
				v := (float64(y) + 0.25 + 0.5*float64(s/2) - float64(h)/2) / focal
				sum += shade(from, ahead.plus(right, u).plus(down, v).unit()) / 4
			}
			img.SetGray(x, y, color.Gray{Y: uint8(255*sum + 0.5)})
		}
	}
	return img
}

// blurred is a picture whose camera moved sideways by some pixels.
func blurred(img *image.Gray, by int) *image.Gray {
	out := image.NewGray(img.Rect)
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			sum := 0
			for k := range by {
				sum += int(img.Pix[y*img.Stride+min(x+k, img.Rect.Dx()-1)])
			}
			out.Pix[y*out.Stride+x] = uint8(sum / by)
		}
	}
	return out
}

// film makes a video of ten frames a second from n places. At each five frames are taken, of which the third is sharp.
func film(t *testing.T, n, w, h int) string {
	t.Helper()
	dir := t.TempDir()
	errs := make([]error, n)
	parallel.For(n, func(i int) {
		sharp := takePicture(walk(i, n), w, h)
		for k := range candidates {
			img := sharp
			if k != 2 {
				img = blurred(sharp, 5+k)
			}
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%03d.png", candidates*i+k)))
			if err == nil {
				err = errors.Join(png.Encode(f, img), f.Close())
			}
			errs[i] = errors.Join(errs[i], err)
		}
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "walk.mp4")
	out, err := exec.Command("ffmpeg", "-loglevel", "error", "-framerate", "10", "-i", filepath.Join(dir, "%03d.png"),
		"-c:v", "libx264", "-crf", "8", "-pix_fmt", "yuv420p", path).CombinedOutput()
	if err != nil {
		t.Skipf("this ffmpeg makes no such video: %v: %s", err, out)
	}
	return path
}

// TestRealColmap finds the cameras of a made-up video with the ffmpeg and the COLMAP that are installed.
func TestRealColmap(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 25 seconds")
	}
	for _, program := range []string{colmapName, "ffmpeg", "ffprobe"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here: apt-get install colmap ffmpeg", program)
		}
	}
	const n = 12
	o := optionsOf(t, film(t, n, 256, 192))
	said, err := run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	t.Log(said)
	if r := reportOf(t, o); r.Photos != n || 100*r.Registered < 95*n || !output.IsFile(o.in(r.Coverage)) {
		t.Fatalf("%d of %d frames have a camera:\n%s", r.Registered, r.Photos, said)
	}
	found := centers(t, o.in(modelFolder))
	var here, there []vec
	for i := range n {
		if at, has := found[fmt.Sprintf("%05d.jpg", i+1)]; has {
			here, there = append(here, walk(i, n)), append(there, at)
		}
	}
	worst, size := misfit(there, here)
	t.Logf("cameras are off by up to %.3f %% of the path's size", 100*worst/size)
	if worst > 0.01*size {
		t.Errorf("a camera is %.3g off, the path has a size of %.3g", worst, size)
	}
}

// centers reads where the photos of a model were taken from.
func centers(t *testing.T, dir string) map[string]vec {
	t.Helper()
	list := map[string]vec{}
	err := colmap.BinaryModel.Read(filepath.Join(dir, "images.bin"), func(r io.Reader) error {
		views, err := colmap.BinaryModel.Images(r)
		for _, v := range views {
			list[v.Name] = center(v)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// misfit brings points onto others by the best similarity, and gives the largest distance that is left, and the size of
// the others: the diagonal of their box. The rotation is Horn's: the eigenvector of a matrix of 4x4 with the largest
// eigenvalue is its quaternion.
func misfit(from, to []vec) (worst, size float64) {
	a, b := centred(from), centred(to)
	var m [3][3]float64
	var sa, sb float64
	low, high := b[0], b[0]
	for i := range a {
		for j := range 3 {
			for k := range 3 {
				m[j][k] += a[i][j] * b[i][k]
			}
			low[j], high[j] = min(low[j], b[i][j]), max(high[j], b[i][j])
		}
		sa, sb = sa+a[i].dot(a[i]), sb+b[i].dot(b[i])
	}
	horn := [4][4]float64{
		{m[0][0] + m[1][1] + m[2][2], m[1][2] - m[2][1], m[2][0] - m[0][2], m[0][1] - m[1][0]},
		{0, m[0][0] - m[1][1] - m[2][2], m[0][1] + m[1][0], m[2][0] + m[0][2]},
		{0, 0, m[1][1] - m[0][0] - m[2][2], m[1][2] + m[2][1]},
		{0, 0, 0, m[2][2] - m[0][0] - m[1][1]}}
	q := [4]float64{1, 0.1, 0.2, 0.3}
	shift := math.Sqrt(sa * sb) // no eigenvalue is below -shift
	for range 20000 {
		var next [4]float64
		for j := range 4 {
			next[j] = shift * q[j]
			for k := range 4 {
				next[j] += horn[min(j, k)][max(j, k)] * q[k]
			}
		}
		length := math.Sqrt(next[0]*next[0] + next[1]*next[1] + next[2]*next[2] + next[3]*next[3])
		for j := range 4 {
			q[j] = next[j] / length
		}
	}
	scale := math.Sqrt(sb / sa)
	u := vec{q[1], q[2], q[3]}
	for i := range a {
		turned := a[i].plus(u.cross(u.cross(a[i]).plus(a[i], q[0])), 2)
		left := vec{}.plus(turned, scale).plus(b[i], -1)
		worst = max(worst, math.Sqrt(left.dot(left)))
	}
	across := high.plus(low, -1)
	return worst, math.Sqrt(across.dot(across))
}

// centred moves the mean of points to the origin.
func centred(points []vec) (list []vec) {
	var mean vec
	for _, p := range points {
		mean = mean.plus(p, 1/float64(len(points)))
	}
	for _, p := range points {
		list = append(list, p.plus(mean, -1))
	}
	return list
}

// TestMisfit finds a similarity that is known.
func TestMisfit(t *testing.T) {
	var from, to []vec
	for i := range 10 {
		p := walk(i, 10)
		from = append(from, p)
		to = append(to, vec{3 - 2*p[1], 2*p[0] + 1, 2 * p[2]}) // a quarter turn, twice as large, moved
	}
	if worst, size := misfit(from, to); worst > 1e-6*size {
		t.Errorf("off by %g of %g", worst, size)
	}
	to[3][0]++
	if worst, _ := misfit(from, to); worst < 0.3 {
		t.Errorf("a point that is off by 1 is off by %g", worst)
	}
}
