//go:build unix

package task

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/scene/photo"
)

// TestSaysMore wants progress to say how fast a training is, and where its picture is: in one line, and no more.
func TestSaysMore(t *testing.T) {
	f := newFarm(t, `checkpoint_every = "1h"`)
	told := filepath.Join(f.top, "told")
	t.Setenv(fakeVariable, waitsFor+told)
	o := f.options(0, 1, "a")
	var pictures, working int
	var last Progress
	o.Report = func(p Progress) {
		last = p
		if p.Preview != "" {
			pictures++
			if data, err := os.ReadFile(p.Preview); err != nil || string(data) != string(fakePreview) {
				t.Errorf("%s: %q, %v", p.Preview, data, err)
			}
		}
		if p.Rate == 50 && p.Unit == "steps" {
			working++
		}
		if pictures > 0 && working > 0 {
			_ = os.WriteFile(told, nil, 0o666) // without it the training never ends
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := Run(ctx, o); err != nil {
		t.Error(err)
	}
	if pictures != 1 || working == 0 {
		t.Errorf("%d lines with a picture, %d with the rate", pictures, working)
	}
	if last.Rate != 0 || last.Step != fakeSteps {
		t.Errorf("at the end: %+v", last)
	}
}

// TestPreviewOfRender makes a small picture of the newest one.
func TestPreviewOfRender(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, "")
	o := f.options(1, 1, "a")
	o.Index = 1
	r := newRunner(&o)
	r.dir = t.TempDir()
	r.out = filepath.Join(r.dir, outName)
	must.Do(t, os.Mkdir(r.out, 0o777))
	said := 0
	o.Report = func(p Progress) {
		if p.Preview != "" {
			said++
		}
	}
	r.lookAtPreview(false) // there is nothing
	for i, size := range [][2]int{{64, 48}, {1920, 1080}} {
		var data bytes.Buffer
		must.Do(t, png.Encode(&data, image.NewRGBA(image.Rect(0, 0, size[0], size[1]))))
		name := filepath.Join(r.out, []string{"b.png", "a.png"}[i])
		must.Do(t, os.WriteFile(name, data.Bytes(), 0o666))
		must.Do(t, os.Chtimes(name, time.Time{}, time.Now().Add(time.Duration(i)*time.Hour)))
		r.lookAtPreview(i == 1) // that of the first is not old yet
		r.lookAtPreview(false)
		file, err := os.ReadFile(r.previewFile())
		if err != nil {
			t.Fatal(err)
		}
		c, err := jpeg.DecodeConfig(bytes.NewReader(file))
		if want := min(size[0], photo.PreviewSide); err != nil || c.Width != want || said != i+1 {
			t.Errorf("picture %d: %d x %d, %v, told %d times", i, c.Width, c.Height, err, said)
		}
	}
	// Normals are no picture.
	normals := filepath.Join(r.out, "b.normal.png")
	must.Do(t, errors.Join(os.WriteFile(normals, nil, 0o666),
		os.Chtimes(normals, time.Time{}, time.Now().Add(2*time.Hour))))
	if n, newest := r.pictures(), filepath.Base(r.newestPicture()); n != 2 || newest != "a.png" {
		t.Errorf("%d pictures, the newest %s", n, newest)
	}
	// What is no picture makes none, and no trouble.
	must.Do(t, os.WriteFile(filepath.Join(r.out, "c.png"), []byte("no picture"), 0o666))
	must.Do(t, os.Chtimes(filepath.Join(r.out, "c.png"), time.Time{}, time.Now().Add(3*time.Hour)))
	if r.lookAtPreview(true); said != 2 {
		t.Errorf("told %d times", said)
	}
}

// TestSpeed measures the speed of a child that does not say it.
func TestSpeed(t *testing.T) {
	var p speed
	now, rate := time.Now(), 0.0
	for i := range 20 { // two a second
		rate = p.at(i, now.Add(time.Duration(i)*time.Second/2), rate)
		if i < 2 && rate != 0 || i > 3 && (rate < 1.9 || rate > 2.1) {
			t.Errorf("after %d: %v", i, rate)
		}
	}
	if p.reported = true; p.at(1000, now.Add(time.Hour), 7) != 7 {
		t.Error("what the child says does not count")
	}
}
