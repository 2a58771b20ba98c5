package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
)

// TestPictureWriters writes pictures side by side, no more than may be in memory at once, in memory that is used again. What fails is told, and ends it.
func TestPictureWriters(t *testing.T) {
	const atOnce, total = 3, 20
	full := errors.New("the disk is full")
	for _, failing := range []int{-1, 7} {
		var mu sync.Mutex
		held, most, made, drawn := 0, 0, 0, 0
		w := newPictureWriters(atOnce, newProgress(io.Discard, progressNone, 0, total))
		var err error
		for i := 0; i < total && err == nil; i++ {
			err = w.add(context.Background(), func(memory []float32) ([]float32, error) {
				mu.Lock()
				defer mu.Unlock()
				held, drawn = held+1, drawn+1
				most = max(most, held)
				if memory == nil {
					memory, made = make([]float32, 1), made+1
				}
				memory[0] = float32(i)
				return memory, nil
			}, func(rgb []float32) error {
				mu.Lock()
				defer mu.Unlock()
				held--
				if rgb[0] != float32(i) {
					t.Errorf("picture %d holds %g when it is written", i, rgb[0])
				}
				if i == failing {
					return full
				}
				return nil
			})
		}
		err = errors.Join(w.finish(), err)
		if most > atOnce || made > atOnce {
			t.Errorf("%d pictures in memory at once, memory for %d was made, want %d at most", most, made, atOnce)
		}
		if failing < 0 && (err != nil || drawn != total || w.done != total) {
			t.Errorf("%d drawn and %d written of %d: %v", drawn, w.done, total, err)
		}
		if failing >= 0 && !errors.Is(err, full) {
			t.Errorf("picture %d failed: %v", failing, err)
		}
		if failing >= 0 {
			if err := w.add(context.Background(), nil, nil); !errors.Is(err, full) { // nothing is drawn any more
				t.Errorf("after that: %v", err)
			}
		}
	}
	stopped, cancel := context.WithCancel(context.Background())
	cancel()
	if err := newPictureWriters(1, nil).add(stopped, nil, nil); !errors.Is(err, errInterrupted) {
		t.Errorf("stopped: %v", err)
	}
}
