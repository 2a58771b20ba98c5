//go:build unix

package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/demo"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/models"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/inria"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
	"vksplat/scene/synth"
)

// leastPSNR is below what any format gives whose numbers are right: of degree 0, without view dependence, the made-up
// model keeps more than this. A frame that is turned, or spherical harmonics in another order, give less.
const leastPSNR = 22

var lossRun = flag.String("loss-model", "", "folder of a run whose model TestFormatLoss writes in all formats")

// lossCase is a row of the table.
type lossCase struct {
	name   string
	format bool
	make   func(t *testing.T, model splatfile.Source, path string) splatfile.Source // what is rendered
}

// TestFormatLoss renders a model before and after it went through each format that can be written, at 256x256, and
// prints a table in Markdown:
//
//	VKSPLAT_LONG=1 go test -count=1 -timeout 60m -v ./cmd/vksplat -run TestFormatLoss
//
// trains the demo's scene for that, and -args -loss-model=OUT after it takes the model of a run; without either the
// model is made up. Every format must keep enough to be the same scene.
func TestFormatLoss(t *testing.T) {
	needDevice(t)
	model, cams, name := lossModel(t)
	var before [][]float32
	renderViews(t, model, cams, func(i int, rgb []float32) { before = append(before, rgb) })
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d splats of SH degree %d, %d views of %dx%d\n\n| written as | bytes per splat | PSNR, mean "+
		"| PSNR, worst view |\n|---|---|---|---|\n",
		name, model.N, model.Degree, len(cams), cams[0].Width, cams[0].Height)
	for _, c := range lossCases(model.N) {
		path := filepath.Join(t.TempDir(), "model")
		after := c.make(t, splatfile.Memory(model, ply.Meta{}), path)
		s, err := splatfile.All(after)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		mean, worst := 0.0, math.Inf(1)
		renderViews(t, s, cams, func(i int, rgb []float32) {
			psnr := psnrOf(before[i], rgb)
			psnr = min(psnr, meter.MaxPSNR)
			mean, worst = mean+psnr/float64(len(cams)), min(worst, psnr)
		})
		size := "-"
		if st, err := os.Stat(path); err == nil {
			size = fmt.Sprintf("%.1f", float64(st.Size())/float64(s.N))
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f dB | %.1f dB |\n", c.name, size, mean, worst)
		if c.format && !(mean >= leastPSNR) {
			t.Errorf("%s: %.1f dB is not a picture of the same scene", c.name, mean)
		}
	}
	t.Logf("\n%s", b.String())
}

// lossCases are the formats, and what convert can leave out.
func lossCases(n int) (list []lossCase) {
	for _, f := range splatfile.Formats() {
		if f.Write != nil && f.Open != nil {
			list = append(list, lossCase{f.Name, true, throughFormat(f)})
		}
	}
	for degree := range scene.MaxSHDegree {
		list = append(list, lossCase{fmt.Sprintf("--sh-degree %d", degree), false,
			func(_ *testing.T, m splatfile.Source, _ string) splatfile.Source {
				return splatfile.WithDegree(m, degree)
			}})
	}
	for _, share := range []int{90, 75, 50} {
		list = append(list, lossCase{fmt.Sprintf("--max-splats, %d %% of them", share), false,
			func(t *testing.T, m splatfile.Source, _ string) splatfile.Source {
				s, _, err := splatfile.Select(m, splatfile.Selection{MaxSplats: n * share / 100})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}})
	}
	return list
}

// throughFormat writes a model and reads it again.
func throughFormat(f *splatfile.Format) func(*testing.T, splatfile.Source, string) splatfile.Source {
	return func(t *testing.T, m splatfile.Source, path string) splatfile.Source {
		if _, err := f.Write(path, m, splatfile.WriteOptions{}); err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		read, err := f.Open(path)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		t.Cleanup(func() { _ = read.Close() }) // only read
		return read
	}
}

// lossModel returns the model to lose from, and 256x256 views of it.
func lossModel(t *testing.T) (*scene.Splats, []scene.Camera, string) {
	t.Helper()
	dir := *lossRun
	if !filetest.Long() && dir == "" {
		o := synth.Options{Images: 4, Width: 256, Height: 256, Points: 8000}
		synth := must.Get(synth.New(o))(t)
		return synth.Splats(3), synth.Cameras(), "Made-up model"
	}
	name := "Model of " + dir
	if dir == "" {
		capture := t.TempDir()
		must.Do(t, synth.Write(capture,
			synth.Options{Images: demo.Photos, Width: demo.Width, Height: demo.Height,
				Points: demo.Points}))
		// Degrees of spherical harmonics come every 1000 steps otherwise.
		dir, name = filepath.Join(t.TempDir(), "out"), "Trained demo scene"
		vksplat(t, "train", capture, "-m", dir, "--iterations", "1200", "--sh-degree-interval", "200", "--max-splats",
			"5000", "--progress", "none")
	}
	file, err := splatfile.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, _, err := ply.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	cams, _, err := inria.ReadCameras(filepath.Join(dir, "cameras.json"))
	if err != nil {
		t.Fatal(err)
	}
	var views []scene.Camera
	for i := 0; i < len(cams); i += 4 {
		c := cams[i]
		c.Cx += float64(256-c.Width) / 2
		c.Cy += float64(256-c.Height) / 2
		c.Width, c.Height = 256, 256
		views = append(views, c)
	}
	return s, views, name
}

// renderViews draws a model.
func renderViews(t *testing.T, s *scene.Splats, cams []scene.Camera, put func(i int, rgb []float32)) {
	t.Helper()
	d := must.Get(pipeline.OpenDevice(pipeline.DeviceOptions{Select: os.Getenv("VKSPLAT_DEVICE")}))(t)
	defer func() {
		if err := models.CloseDevice(d); err != nil {
			t.Error(err)
		}
	}()
	r := must.Get(pipeline.NewRenderer(d, s, cams, pipeline.RenderConfig{}))(t)
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, c := range cams {
		rgb := must.Get(r.RenderInto(nil, c))(t)
		put(i, rgb)
	}
}

// TestMovedRenders draws a moved model with cameras that moved with it: the pictures are the same.
func TestMovedRenders(t *testing.T) {
	needDevice(t)
	synth := must.Get(synth.New(synth.Options{Images: 4, Width: 128, Height: 128, Points: 3000}))(t)
	model := synth.Splats(3)
	for i := range model.SH { // seen from elsewhere, colours differ
		if i%48 >= 3 {
			model.SH[i] *= 3
		}
	}
	s := must.Get(splatfile.ParseTransform("rotate 130,-35,250 scale 1.5 translate 3,-1,2"))(t)
	moved := must.Get(splatfile.All(splatfile.Move(splatfile.Memory(model, ply.Meta{}), s, "")))(t)
	cams := synth.Cameras()
	var before [][]float32
	renderViews(t, model, cams, func(_ int, rgb []float32) { before = append(before, rgb) })
	for i := range cams {
		cams[i] = movedCamera(cams[i], s)
	}
	renderViews(t, moved, cams, func(i int, rgb []float32) {
		if psnr := psnrOf(before[i], rgb); !(psnr >= 50) {
			t.Errorf("view %d: %.1f dB", i, psnr)
		}
	})
}

// movedCamera returns the camera that sees of a moved scene what c saw before, s times as large: x was R^T (y - t) / s.
func movedCamera(c scene.Camera, s splatfile.Similarity) scene.Camera {
	from := c.R
	for i := range 3 {
		for j := range 3 {
			c.R[3*i+j] = 0
			for k := range 3 {
				c.R[3*i+j] += from[3*i+k] * s.R[3*j+k]
			}
		}
	}
	for i := range 3 {
		c.T[i] *= s.Scale
		for k := range 3 {
			c.T[i] -= c.R[3*i+k] * s.T[k]
		}
	}
	return c
}

// psnrOf is the likeness in decibels of two pictures of as many numbers.
func psnrOf(a, b []float32) float64 {
	sum := 0.0
	for i, x := range a {
		sum += math.Pow(float64(x-b[i]), 2)
	}
	return -10 * math.Log10(sum/float64(len(a)))
}
