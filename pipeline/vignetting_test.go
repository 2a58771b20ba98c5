package pipeline

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"vksplat/pipeline/ref"
	"vksplat/shaders/layout"
)

// TestVignettingOfRenderings compares what is applied to a rendering with what training applies to its own.
func TestVignettingOfRenderings(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range [][2]int{{1, 1}, {17, 9}, {9, 31}} {
		var v Vignetting
		var a ref.Appearance[float64]
		for i := range v {
			for k := range v[i] {
				v[i][k] = float32(2 * r.NormFloat64()) // some factors are below zero
				a[layout.Vignetting+5*i+k] = float64(v[i][k])
			}
		}
		n := size[0] * size[1]
		render, pic := make([]float32, 3*n), make([][4]float64, n)
		for p := range pic {
			for i := range 3 {
				render[3*p+i] = r.Float32()
				pic[p][i] = float64(render[3*p+i])
			}
		}
		v.Apply(render, size[0], size[1])
		for p, want := range ref.ApplyAppearance(pic, &a, ref.Camera{Width: size[0], Height: size[1], Vignetting: true}) {
			for i := range 3 {
				if got := float64(render[3*p+i]); math.Abs(got-want[i]) > 1e-5*(1+math.Abs(want[i])) {
					t.Fatalf("%v: channel %d of pixel %d is %g, want %g", size, i, p, got, want[i])
				}
			}
		}
	}
}

// TestVignettingsOfCameras wants each camera's vignetting to be the sum of what its photos have learnt.
func TestVignettingsOfCameras(t *testing.T) {
	views, init, scale, cfg := partialScene(t)
	o := TrainerOptions{Photos: make([]PhotoStart, len(views))}
	for i := range o.Photos {
		o.Photos[i].Camera = i % 2
	}
	tr, err := trainWith(testDevice(t), views, init, scale, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := tr.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	got, err := tr.Vignettings()
	if err != nil || len(got) != 2 {
		t.Fatalf("%d cameras, %v; want 2", len(got), err)
	}
	rows, err := tr.e.appearances.download()
	if err != nil {
		t.Fatal(err)
	}
	var want [2]Vignetting
	for i := range rows {
		for k := range 15 {
			want[i%2][k/5][k%5] += rows[i].Own[layout.Vignetting+k]
		}
	}
	if want[0] == want[1] || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("vignetting of two cameras:\n%v, want\n%v", got, want)
	}
}
