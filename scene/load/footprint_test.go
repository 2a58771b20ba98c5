package load_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/fingerprint"
	"vksplat/scene/initial"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/load/loadtest"
	"vksplat/scene/metric"
	"vksplat/scene/photo"
	"vksplat/scene/ply"
	"vksplat/scene/scenetest"
)

// manyPoints are the points of a large capture. What does not grow with their number, as the depths that a worker of
// Clear sorts, weighs more than with millions of them.
const manyPoints = 1 << 18

// largeModel writes a capture whose model has manyPoints points with tracks of three, and the 2D points that belong to
// them.
func largeModel(t *testing.T) string {
	t.Helper()
	root := loadtest.TinyCapture(t)
	model, le := filepath.Join(root, "sparse", "0"), binary.LittleEndian
	images := must.Get(os.ReadFile(filepath.Join(model, "images.bin")))(t)
	views := must.Get(colmap.ParseImages(colmap.NewCursor(bytes.NewReader(images), int64(len(images)))))(t)
	write := func(name string, n int, record func(i int, b []byte) []byte) {
		f := must.Get(os.Create(filepath.Join(model, name)))(t)
		w := bufio.NewWriterSize(f, 1<<20)
		b := le.AppendUint64(nil, uint64(n))
		for i := range n {
			must.Get(w.Write(b))(t)
			b = record(i, b[:0])
		}
		_, _ = w.Write(b)
		must.Do(t, w.Flush())
		must.Do(t, f.Close())
	}
	observed := make([]byte, 24*(3*manyPoints/len(views)))
	write("images.bin", len(views), func(i int, b []byte) []byte {
		b = le.AppendUint32(b, views[i].Id)
		b = scenetest.AppendFloats(scenetest.AppendFloats(b, views[i].Quat[:]...), views[i].T[:]...)
		b = append(append(le.AppendUint32(b, views[i].Camera), views[i].Name...), 0)
		return append(le.AppendUint64(b, uint64(len(observed)/24)), observed...)
	})
	points := scenetest.TinyPoints()
	write("points3D.bin", manyPoints, func(i int, b []byte) []byte {
		p := points[i%len(points)]
		r := philox.Block([4]uint32{uint32(i)}, [2]uint32{})
		b = le.AppendUint64(b, uint64(i+1))
		for k, x := range p.Pos {
			b = scenetest.AppendFloats(b, x+0.3*philox.Uniform(r[k]))
		}
		b = append(b, p.Color[:]...)
		b = le.AppendUint64(scenetest.AppendFloats(b, 0.5), 3)
		return append(b, make([]byte, 3*8)...)
	})
	return root
}

// peakHeap returns by how many bytes the live heap grew at most while f ran.
func peakHeap(f func()) int64 {
	defer debug.SetGCPercent(debug.SetGCPercent(2)) // garbage hardly counts
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before, most := int64(m.HeapAlloc), int64(0)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, int64(m.HeapAlloc)-before)
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return most
}

// TestComparingFootprint measures what comparing and writing the widest of pictures takes in RAM beside it: nothing
// that grows with its height.
func TestComparingFootprint(t *testing.T) {
	const width, height = 1 << 15, 96
	shot := scene.Image{Width: width, Height: height, Pix: make([]uint8, 4*width*height)}
	for i := range shot.Pix {
		shot.Pix[i] = uint8(i * i / 97)
	}
	render, path := photo.FloatRGB(shot), filepath.Join(t.TempDir(), "sheet.png")
	var psnr float64
	var errs [2]error
	grown := [2]int64{
		peakHeap(func() { psnr, _, errs[0] = metric.Compare(shot, render, metric.PaddingValid, nil) }),
		peakHeap(func() { errs[1] = photo.WriteSheet(path, shot, render) }),
	}
	if errs != [2]error{} || !math.IsInf(psnr, 1) {
		t.Fatal(psnr, errs)
	}
	t.Logf("comparing %d bytes, writing %d", grown[0], grown[1])
	if most := metric.CompareBytes(); max(grown[0], grown[1]) > most {
		t.Errorf("comparing takes %d bytes and writing %d, of %d", grown[0], grown[1], most)
	}
}

// TestLoadingFootprint measures what each stage of loading a large capture takes in RAM. Existing trainers took
// gigabytes for such captures before the first step. Garbage that nobody has collected yet counts as well, on a busy
// machine more of it: the least of three passes is nearest to what is used.
func TestLoadingFootprint(t *testing.T) {
	root := largeModel(t)
	var least []float64
	for pass := range 3 {
		stages := loadingStages(t, root)
		over := false
		for i, s := range stages {
			if pass == 0 {
				least = append(least, s.took)
			}
			least[i] = min(least[i], s.took)
			over = over || least[i] > s.most
			t.Logf("%-25s %6.1f bytes a point", s.name, s.took)
		}
		if !over {
			return
		}
		if pass == 2 {
			for i, s := range stages {
				if least[i] > s.most {
					t.Errorf("%s takes %.1f bytes a point at the peak, want at most %g", s.name, least[i], s.most)
				}
			}
		}
	}
}

// loadingStage is one stage: bytes a point at its peak, with what the stages before left, and the most that it may
// take.
type loadingStage struct {
	name       string
	most, took float64
	run        func()
}

// loadingStages runs the stages one after the other.
func loadingStages(t *testing.T, root string) []loadingStage {
	var c *scene.Capture
	var report *inspect.Report
	var files []ply.FilePoint
	var splats *scene.Splats
	var err error
	splat := float64(4 * scene.SplatNumbers(0))
	stages := []loadingStage{
		{name: "load", most: 33, run: func() { c, err = load.Capture(root, loadtest.AnyModel()) }},
		{name: "inspect", most: 34,
			run: func() { report, err = inspect.Capture(context.Background(), c, inspect.Options{Coverage: true}) }},
		{name: "fingerprint", most: 42, run: func() {
			var f *fingerprint.Fingerprint
			if f, err = fingerprint.Start(c, 1); err == nil {
				_, err = f.Wait(context.Background())
				f.Close()
			}
		}},
		{name: "copy for the file", most: 50, run: func() { files = ply.FilePoints(c, [3]float64{1, 2, 3}) }},
		{name: "normalise", most: 50, run: func() { c.Normalise() }},
		{name: "clear", most: 80, run: func() { c.Clear(c.Depths(0.5)) }},
		{name: "splats", most: 56 + splat,
			run: func() {
				splats, err = initial.Splats(context.Background(), c,
					initial.Options{Opacity: 0.1, Scale: 1})
			}},
		{name: "splats of a fine grid", most: 109 + splat, run: func() {
			splats = nil
			splats, err = initial.Splats(context.Background(), c,
				initial.Options{Opacity: 0.1, Scale: 1, Grid: 1e-6 / c.Frame.Scale})
		}},
		{name: "splats of a coarse grid", most: 56 + splat, run: func() {
			splats = nil
			splats, err = initial.Splats(context.Background(), c,
				initial.Options{Opacity: 0.1, Scale: 1, Grid: 0.01 / c.Frame.Scale})
		}},
	}
	var start, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&start)
	for i := range stages {
		runtime.GC()
		runtime.ReadMemStats(&now)
		grown := peakHeap(stages[i].run)
		if err != nil {
			t.Fatal(err)
		}
		stages[i].took = float64(int64(now.HeapAlloc)-int64(start.HeapAlloc)+grown) / manyPoints
	}
	if len(c.Points) < manyPoints*9/10 || len(files) != manyPoints || splats.N == 0 || report.Points != manyPoints ||
		math.IsNaN(float64(splats.LogScales[0])) {
		t.Errorf("%d points, %d for the file, %d splats", len(c.Points), len(files), splats.N)
	}
	return stages
}
