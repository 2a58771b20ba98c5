package queue

import (
	"testing"
	"time"
)

// TestClockJumps tells a clock that was moved from an answer that was long on its way.
func TestClockJumps(t *testing.T) {
	const s = time.Second
	type look struct{ server, before, after time.Duration } // from the beginning of this process on, and the server's clock likewise
	for name, c := range map[string]struct {
		looks       []look
		back, ahead bool
	}{
		"right":                      {[]look{{0, 0, 0}, {9 * s, 9 * s, 9 * s}}, false, false},
		"late answer":                {[]look{{0, 0, 0}, {s, s, 5 * s}}, false, false},
		"quick after late":           {[]look{{s, s, 5 * s}, {6 * s, 6 * s, 6 * s}}, false, false},
		"late question":              {[]look{{0, 0, 0}, {5 * s, s, 5 * s}, {6 * s, 6 * s, 6 * s}}, false, false},
		"forward":                    {[]look{{0, 0, 0}, {12 * s, 9 * s, 9 * s}}, false, true},
		"forward, late answer":       {[]look{{0, 0, 0}, {20 * s, 9 * s, 13 * s}}, false, true},
		"back":                       {[]look{{0, 0, 0}, {6 * s, 9 * s, 9 * s}}, true, false},
		"back, late answer":          {[]look{{0, 0, 0}, {-20 * s, 9 * s, 13 * s}}, true, false},
		"slower, as clocks are":      {[]look{{0, 0, 0}, {8 * s, 9 * s, 9 * s}}, false, false},
		"late both times, and right": {[]look{{4 * s, 0, 4 * s}, {9 * s, 9 * s, 13 * s}}, false, false},
	} {
		var k clock
		own, server := time.Now(), time.Unix(1e9, 0)
		back := false
		for _, l := range c.looks {
			back = k.take(server.Add(l.server), own.Add(l.before), own.Add(l.after)) || back
		}
		if back != c.back || !k.ahead.IsZero() != c.ahead {
			t.Errorf("%s: back %v, ahead %v", name, back, !k.ahead.IsZero())
		}
	}
}
