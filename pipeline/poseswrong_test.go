package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/pipeline/checkpoint"
	"vksplat/pipeline/photos"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// wrongScene is promiseScene with poses that are wrong, refined from an early step on.
func wrongScene(t testing.TB) ([]TrainView, *scene.Splats, float64, recipe.Config) {
	t.Helper()
	views, init, scale, cfg := promiseScene(t)
	views = wrongPoses(views[:4], 2, 0.02)
	cfg.Iterations, cfg.RefineStop, cfg.ResetEvery = 26, 25, 21
	cfg.RefineCameras, cfg.PoseStart, cfg.PoseGain = true, 8, -1
	return views, init, scale, cfg
}

// posesHash trains wrongScene and returns the hash of the model and of the table of poses, and how far poses have
// moved.
func posesHash(t testing.TB, d *Device, change func(*recipe.Config), o TrainerOptions) (hash string,
	moved float32) {
	t.Helper()
	tr := begun(t, d, wrongScene, change, o)
	defer tr.Close()
	hash = endHash(t, tr)
	if tr.shards.first.e.setup.poses == nil {
		return hash, 0
	}
	rows := must.Get(tr.shards.first.e.setup.poses.download())(t)
	for i := range rows {
		for _, x := range rows[i].Own {
			moved += max(x, -x)
		}
	}
	return hash + " " + rowsHash(rows), moved
}

// TestSameBytesWithPoses trains wrongScene in every way that must not matter.
func TestSameBytesWithPoses(t *testing.T) {
	d := testDevice(t)
	usual := TrainerOptions{}
	want, moved := posesHash(t, d, nil, usual)
	if moved == 0 {
		t.Fatal("no pose moves: the test proves nothing")
	}
	t.Log(want) // the same with every width of vectors
	same := func(name string, o TrainerOptions) {
		t.Helper()
		if got, _ := posesHash(t, d, nil, o); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	t.Run("bands", func(t *testing.T) {
		inBands(t, 2)
		same("larger buffers and two bands", larger)
	})
	t.Run("chunks", func(t *testing.T) {
		smallChunks(t, 1<<20/thinning())
		tr := begun(t, testDevice(t), wrongScene, nil, usual)
		inChunks(t, tr)
		tr.Close()
		same("small chunks", usual)
	})
	t.Run("serial", func(t *testing.T) {
		t.Setenv("VKSPLAT_SERIAL", "1")
		same("serial", usual)
	})
	// Where the trial says no, there is the model of a run without.
	plain, _ := posesHash(t, d, func(c *recipe.Config) { c.RefineCameras = false }, usual)
	refused, moved := posesHash(t, d, func(c *recipe.Config) { c.PoseGain = 1 }, usual)
	if model := func(h string) string { return strings.Fields(h)[0] }; model(plain) != model(refused) || moved != 0 {
		t.Errorf("with poses that are not refined the model is %s, without %s", refused, plain)
	}
	if got, _ := posesHash(t, d, func(c *recipe.Config) { c.PoseAnchor *= 100 }, usual); got == want {
		t.Error("the anchor changes nothing")
	}
}

// TestResumePoses goes on from before the trial, from right after it, and from later, and wants the same checkpoint at
// the end; measuring on the way changes none. A run cannot begin or cease to refine poses on the way. The second trial
// is after the first stop and before the other one, too.
func TestResumePoses(t *testing.T) {
	t.Run("early", func(t *testing.T) { testResumePoses(t, 8) })
	t.Run("late", func(t *testing.T) { testResumePoses(t, 17) })
}

func testResumePoses(t *testing.T, start int) {
	d := testDevice(t)
	views, init, scale, cfg := wrongScene(t)
	if cfg.PoseStart = start; (start >= lateStep(&cfg)) != (start == 17) {
		t.Fatalf("the second trial is before step %d", lateStep(&cfg))
	}
	dir := t.TempDir()
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	_, _, _, _, run := checkpointScene(t)
	tr.SetRun(run)
	stops := []int{5, 20}
	for _, step := range stops {
		must.Do(t, tr.RunTo(t.Context(), step, nil))
		saved(t, tr, filepath.Join(dir, fmt.Sprint(step)))
	}
	must.Get(tr.Align(views[0].Camera, views[0].Image))(t)
	must.Do(t, tr.Run(t.Context(), nil))
	want := saved(t, tr, filepath.Join(dir, "end"))
	if !tr.shards.first.e.setup.poses.active {
		t.Fatal("poses are not refined: the test proves nothing")
	}
	for _, step := range stops {
		c := must.Get(checkpoint.Open(filepath.Join(dir, fmt.Sprint(step))))(t)
		defer c.Close()
		again := must.Get(resumeOn(d, views, c, cfg))(t)
		defer again.Close()
		must.Do(t, again.Run(t.Context(), nil))
		if got := saved(t, again, filepath.Join(dir, "again")); !bytes.Equal(got, want) {
			t.Errorf("resumed after step %d, it ends otherwise", step)
		}
		without := cfg
		without.RefineCameras = false
		if err := c.Accepts(without, len(views)); err == nil || !strings.Contains(err.Error(),
			"cannot resume without") {
			t.Errorf("without: %v", err)
		}
	}
}

// TestTwoTrials wants the second trial to decide where the first one does not say yes, before the step that it names,
// and steps from there on to be small.
func TestTwoTrials(t *testing.T) {
	d := testDevice(t)
	var gains []float64
	trials := func(gain float64) (list []PoseTrial, moved float32) {
		change := func(c *recipe.Config) {
			c.Iterations, c.ResetEvery, c.PoseStart, c.PoseGain = 80, 0, 1, gain
		}
		_, moved = posesHash(t, d, change, TrainerOptions{OnTrial: func(p PoseTrial) { list = append(list, p) }})
		return list, moved
	}
	list, _ := trials(1)
	for _, p := range list {
		gains = append(gains, p.Gain)
	}
	if len(list) != 2 || list[0].Again != list[1].Step || list[1].Again != 0 || list[0].Refined || list[1].Refined {
		t.Fatalf("trials that say no: %+v", list)
	}
	least := min(gains[0]/grossGain, gains[1])
	if !(least > 0) {
		t.Fatalf("gains %g: the test proves nothing", gains)
	}
	list, early := trials(0.9 * least)
	if len(list) != 1 || !list[0].Refined {
		t.Errorf("a trial that says yes: %+v", list)
	}
	need := (gains[0]/grossGain + gains[1]) / 2
	if !(gains[1] > need) {
		t.Fatalf("gains %g: the second trial never decides", gains)
	}
	list, late := trials(need)
	if len(list) != 2 || list[0].Refined || !list[1].Refined || late == 0 || late > early/2 {
		t.Errorf("trials %+v; cameras moved by %g late, %g early", list, late, early)
	}
}

// endsAsked is a context that is cancelled when it has been asked so often whether it is.
type endsAsked struct {
	context.Context
	left int
}

func (c *endsAsked) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestTrialInterrupted interrupts the trial of poses between two steps of a photo's camera: it ends there, the
// checkpoint is the one from before it, and the run that goes on tries again and ends as if nothing had been.
func TestTrialInterrupted(t *testing.T) {
	d := testDevice(t)
	views, init, scale, cfg := wrongScene(t)
	cfg.PoseGain = -0.9
	_, _, _, _, run := checkpointScene(t)
	trials := 0
	begin := func() *Trainer {
		cams, photos := splitViews(views)
		tr := must.Get(NewTrainer(d, cams, photos, init, scale, cfg, TrainerOptions{Depths: depthsOf(cams),
			OnTrial: func(PoseTrial) { trials++ }}))(t)
		t.Cleanup(func() { _ = tr.Close() })
		tr.SetRun(run)
		return tr
	}
	dir := t.TempDir()
	whole := begin()
	must.Do(t, whole.Run(t.Context(), nil))
	want := saved(t, whole, filepath.Join(dir, "whole"))

	tr := begin()
	must.Do(t, tr.RunTo(t.Context(), cfg.PoseStart, nil))
	before := saved(t, tr, filepath.Join(dir, "before"))
	if trials != 1 {
		t.Fatalf("%d trials before the step of the second", trials)
	}
	if err := tr.Run(&endsAsked{t.Context(), 8}, nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if k := tr.shards.first.e.programs.frames[0].hostParams.Step; trials != 1 || tr.Step() != cfg.PoseStart ||
		k <= AlignSteps-trialSteps || k >= AlignSteps-2 {
		t.Errorf("%d trials, step %d of training, %d of a camera", trials, tr.Step(), k)
	}
	if got := saved(t, tr, filepath.Join(dir, "after")); !bytes.Equal(got, before) {
		t.Error("an interrupted trial changes the checkpoint")
	}
	must.Do(t, tr.Run(t.Context(), nil))
	if got := saved(t, tr, filepath.Join(dir, "again")); trials != 2 || !bytes.Equal(got, want) {
		t.Errorf("after an interrupted trial the run ends otherwise, %d trials", trials)
	}
}

// TestPosesRefused names what poses are not refined with.
func TestPosesRefused(t *testing.T) {
	views, init, scale, cfg := wrongScene(t)
	d := testDevice(t)
	views[2].Camera.Photo = "panorama.jpg"
	if _, err := trainOn(d, views, init, scale, cfg); err == nil || !strings.Contains(err.Error(), "share a photo") {
		t.Error(err)
	}
	views[2].Camera.Photo = ""
	if _, err := trainWith(d, views, init, scale, cfg, TrainerOptions{Others: []*Device{d}}); err == nil ||
		!strings.Contains(err.Error(), "one device") {
		t.Error(err)
	}
	if _, err := trainWith(d, views, init, scale, cfg, TrainerOptions{Anchors: make(Anchors, 3)}); err == nil ||
		!strings.Contains(err.Error(), "anchors of 3 photos") {
		t.Error(err)
	}
}

// TestHeldTenth wants a tenth of each photo's tiles held back, others in other photos, and masks to be respected.
func TestHeldTenth(t *testing.T) {
	m := scene.Image{Width: 330, Height: 250, Mask: make([]uint32, photos.MaskWords(330*250))}
	for p := range 330 * 250 {
		if p%330 >= 16 {
			m.Mask[p/32] |= 1 << (p % 32)
		}
	}
	var first []uint32
	for view := range 3 {
		held, others := withTenth(m, view, true), withTenth(m, view, false)
		n := 0
		for i, w := range m.Mask {
			if held.Mask[i]&others.Mask[i] != 0 || held.Mask[i]|others.Mask[i] != w {
				t.Fatalf("view %d: word %d: %x and %x of %x", view, i, held.Mask[i], others.Mask[i], w)
			}
			n += bits.OnesCount32(held.Mask[i])
		}
		if share := float64(n) / (314 * 250); share < 0.07 || share > 0.13 {
			t.Errorf("view %d: a share of %.3f is held back", view, share)
		}
		if view == 0 {
			first = held.Mask
		} else if slices.Equal(first, held.Mask) {
			t.Errorf("view %d has the same tiles held back as view 0", view)
		}
	}
}

// TestVerifyPoses wants the checks after each pass of VKSPLAT_VERIFY=1 also of units that move their camera.
func TestVerifyPoses(t *testing.T) {
	t.Setenv(verifyVariable, "1")
	d := testDevice(t)
	views, init, scale, cfg := wrongScene(t)
	cfg.Iterations = 12
	tr := must.Get(trainOn(d, views, init, scale, cfg))(t)
	defer tr.Close()
	must.Do(t, tr.Run(t.Context(), nil))
	must.Get(tr.Align(views[0].Camera, views[0].Image))(t)
	names := &tr.shards.first.e.programs.frames[0].verifier.names
	if len(names[recipe.Step]) == 0 || len(names[recipe.Align]) == 0 {
		t.Errorf("a step has %d checks, an aligned camera %d", len(names[recipe.Step]), len(names[recipe.Align]))
	}
}
