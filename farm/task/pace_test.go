package task

import (
	"math/rand/v2"
	"testing"
	"time"

	"vksplat/farm/spec"
)

// TestPace lets trainings and renders work for hours, with uploads that take their time, and looks at every moment what
// a lost machine would cost.
func TestPace(t *testing.T) {
	const tick = time.Second
	for _, kind := range []*spec.Kind{spec.KindTrain, spec.KindRender} {
		for _, every := range []time.Duration{time.Minute, 5 * time.Minute, 7 * time.Minute, 10 * time.Minute,
			time.Hour} {
			r := &workdir{task: &spec.Task{Kind: kind, Limits: spec.Limits{CheckpointEvery: every}}}
			random := rand.New(rand.NewPCG(1, uint64(every)))
			saves, mostUpload, late := tick, every/3, tick
			if r.trains() {
				saves, late = r.savesEvery(), r.savesEvery()/20 // how much later a checkpoint is written than it should
			}
			// since the beginning; what is written and stored is of these times
			var now, written, stored, worst time.Duration
			var sends, ends time.Duration
			sending, uploads, newest := false, 0, 0
			p := r.newPace(time.Unix(0, 0), 0)
			nextSave := saves
			for ; now < 20*time.Hour; now += tick {
				if now >= nextSave {
					written, newest = now, newest+1
					nextSave = now + saves + time.Duration(random.Int64N(int64(late)+1))
				}
				if sending && now >= ends {
					stored, sending = sends, false
				}
				if p.uploadDue(time.Unix(0, 0).Add(now), newest) && !sending {
					p.begins(time.Unix(0, 0).Add(now), r.trains())
					sends, ends, sending = written, now+time.Duration(random.Int64N(int64(mostUpload))), true
					uploads++
				}
				worst = max(worst, now-stored)
			}
			slack := time.Duration(p.nth)*(late+tick) + 2*tick
			if worst > every+mostUpload+slack {
				t.Errorf("%s, every %v: %v are lost, more than that and %v of uploading", kind, every, worst,
					mostUpload)
			}
			if most := int(20 * time.Hour / max(every-saves, tick)); uploads > most+1 || uploads < 2 {
				t.Errorf("%s, every %v: %d uploads, %d would do", kind, every, uploads, most)
			}
		}
	}
}

// TestPaceAfterFailure has an upload fail: the next one does not wait for another checkpoint.
func TestPaceAfterFailure(t *testing.T) {
	r := &workdir{task: &spec.Task{Kind: spec.KindTrain, Limits: spec.Limits{CheckpointEvery: 10 * time.Minute}}}
	now := time.Unix(0, 0)
	p := r.newPace(now, 100)
	if p.uploadDue(now, 100) {
		t.Error("what was fetched goes up again")
	}
	if !p.uploadDue(now, 200) {
		t.Error("the first checkpoint waits")
	}
	p.begins(now, true)
	if p.uploadDue(now, 300) || !p.uploadDue(now, 400) {
		t.Error("not every second checkpoint goes up")
	}
	p.begins(now, true)
	p.failed(now)
	if p.uploadDue(now.Add(uploadAgain-1), 400) || !p.uploadDue(now.Add(uploadAgain), 400) {
		t.Error("what failed is not made good in time")
	}
}
