package train

import (
	"bytes"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	must "vksplat/internal/musttest"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/run/runtest"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/photo"
	"vksplat/scene/results"
)

// TestLensScore: photos are dark at the corners, and the exported file is not. Through what is learnt of the lens its
// pictures are like the held-out photos again, of which nothing is learnt. Without --vignetting there is no such score.
func TestLensScore(t *testing.T) {
	dir := runtest.SmallScene(t, 600)
	lens := pipeline.Vignetting{}
	for ch := range lens {
		lens[ch][2] = -1.6 // a third is left in the corners
	}
	photos, err := filepath.Glob(filepath.Join(dir, "images", "*.png"))
	if err != nil || len(photos) == 0 {
		t.Fatal(photos, err)
	}
	for _, file := range photos {
		darkenFile(t, file, &lens)
	}
	scores := map[bool]results.ViewScore{}
	for _, learns := range []bool{false, true} {
		o := NewOptions()
		o.Scene, o.Out, o.Eval, o.Progress, o.Config.Iterations = dir, filepath.Join(t.TempDir(), "out"), true,
			meter.None, 250
		o.Config.Vignetting, o.Config.AppearanceStart, o.Config.RefineEvery = learns, 50, 0
		var told bytes.Buffer
		st := must.Get(Do(cli.New(nil, &told, io.Discard), o))(t)
		if said := strings.Contains(told.String(), "as the cameras would have taken it"); said != learns ||
			(st.LensPSNR != nil) != learns {
			t.Fatalf("vignetting %v: a score of %v, printed %q", learns, st.LensPSNR, &told)
		}
		for file, word := range map[string]string{"results.json": "lens_psnr", "per_view.json": "lens_psnr",
			"metrics.jsonl": "lens_psnr", "stats.json": "lens_psnr", output.ReportFile: "through the lens"} {
			data, err := os.ReadFile(filepath.Join(o.Out, file))
			if err != nil || strings.Contains(string(data), word) != learns {
				t.Errorf("vignetting %v: %s, error %v", learns, file, err)
			}
		}
		v := results.ViewScore{PSNR: st.PSNR}
		if learns && st.LensPSNR != nil {
			v.LensPSNR = st.LensPSNR
		}
		scores[learns] = v
	}
	off, on := scores[false], scores[true]
	t.Logf("without %.2f dB; with %.2f dB, through the lens %.2f dB", off.PSNR, on.PSNR, *on.LensPSNR)
	if *on.LensPSNR < on.PSNR+1 {
		t.Error("the score through the lens is no better than the plain one")
	}
}

// darkenFile makes a photo what a lens would have made of it.
func darkenFile(t *testing.T, file string, lens *pipeline.Vignetting) {
	t.Helper()
	data := must.Get(os.ReadFile(file))(t)
	img := must.Get(photo.DecodeStored(data))(t)
	picture := photo.FloatRGB(img)
	lens.Darken(picture, img.Width, img.Height)
	out := image.NewNRGBA(image.Rect(0, 0, img.Width, img.Height))
	for i := range picture {
		out.Pix[i/3*4+i%3] = scene.ToByte(255 * float64(picture[i]))
		out.Pix[i/3*4+3] = 255
	}
	must.Do(t, atomicfile.Write(file, func(w io.Writer) error { return photo.EncodePNG(w, out) }))
}
