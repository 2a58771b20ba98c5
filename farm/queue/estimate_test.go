package queue

import (
	"bytes"
	"image"
	"image/jpeg"
	"testing"
	"time"
)

// TestOutlook guesses how long jobs take.
func TestOutlook(t *testing.T) {
	minutes := func(n float64) Duration { return Duration(n * float64(time.Minute)) }
	done := func(took float64) *Entry { return &Entry{State: Succeeded, Took: minutes(took)} }
	for _, c := range []struct {
		name    string
		entries map[int]*Entry // of model/0 to model/3, then fly
		left    Duration
		more    bool
		rates   map[string]float64
	}{
		{name: "nothing begun"},
		{name: "nothing known", entries: map[int]*Entry{0: {State: Running, Took: minutes(1)}}, more: true},
		{name: "nothing runs", entries: map[int]*Entry{0: done(10)}},
		// One runs: 10 minutes to go by its own rate, of 15. Three like it wait, and one of another kind, of which nothing is known.
		{name: "by the rate", entries: map[int]*Entry{0: {State: Running, Step: 1000, Of: 7000, Rate: 10, Unit: "steps", Took: minutes(5)}},
			left: minutes(10 + 3*15), more: true, rates: map[string]float64{"steps": 10}},
		// Without a rate by what was done: half in 5 minutes.
		{name: "by the steps", entries: map[int]*Entry{0: {State: Running, Step: 50, Of: 100, Took: minutes(5)}}, left: minutes(5 + 3*10), more: true},
		// Two at a time, of 4 minutes each.
		{name: "by those done", entries: map[int]*Entry{0: done(4), 1: {State: Running, Took: minutes(1)}, 2: {State: Running, Took: minutes(9)}}, left: minutes((3 + 0 + 4) / 2.), more: true},
		// The longest that runs bounds it.
		{name: "the longest", entries: map[int]*Entry{0: done(1), 1: done(1), 2: done(1), 3: {State: Running, Step: 1, Of: 6001, Rate: 10, Took: minutes(1)}, 4: {State: Running, Step: 1, Of: 11, Rate: 10}},
			left: minutes(10)},
		{name: "the end", entries: map[int]*Entry{0: done(1), 1: done(1), 2: done(1), 3: done(1), 4: {State: Running, Step: 11, Of: 11, Rate: 10}}},
	} {
		b := newBoard(Head{}, 1, []Task{{Name: "model/0"}, {Name: "model/1"}, {Name: "model/2"}, {Name: "model/3"}, {Name: "fly"}})
		for i, e := range c.entries {
			b.setEntry(i, e, 2, time.Time{})
		}
		var job JobStatus
		b.outlook(&job)
		if job.Left != c.left || job.More != c.more || len(job.Rates) != len(c.rates) || job.Rates["steps"] != c.rates["steps"] {
			t.Errorf("%s: %v, %v and %v, want %v, %v and %v", c.name, time.Duration(job.Left), job.More, job.Rates, time.Duration(c.left), c.more, c.rates)
		}
	}
	wild := newBoard(Head{}, 1, []Task{{Name: "a"}})
	wild.setEntry(0, &Entry{State: Running, Step: 1, Of: 1 << 62, Rate: 1e-300}, 2, time.Time{})
	var job JobStatus
	if wild.outlook(&job); time.Duration(job.Left) != longestLeft {
		t.Errorf("of a wild entry: %v", time.Duration(job.Left))
	}
}

// TestCheckPreview refuses what is no small picture.
func TestCheckPreview(t *testing.T) {
	made := func(width, height int) []byte {
		var b bytes.Buffer
		if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	if err := CheckPreview(made(480, 270)); err != nil {
		t.Error(err)
	}
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("<html>"), "PNG": []byte("\x89PNG\r\n\x1a\n"), "half a header": made(8, 8)[:20], "wide": made(maxPreviewSide+1, 1), "high": made(1, maxPreviewSide+1),
		"long": append(made(8, 8), make([]byte, MaxPreview)...), "huge dimensions": append([]byte("\xff\xd8\xff\xc0\x00\x0b\x08\xff\xff\xff\xff\x01\x01\x11\x00"), 0xff, 0xd9),
	} {
		if CheckPreview(data) == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
