//go:build unix

package task

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"
)

// TestSignsOfLife wants reports while inputs come and results go, in which no step changes.
func TestSignsOfLife(t *testing.T) {
	t.Setenv(fakeVariable, "")
	f := newFarm(t, "")
	o := f.options(0, 1, "a")
	var life []int64
	phases := map[string]int64{}
	o.Report = func(p Progress) {
		life = append(life, p.Life)
		phases[p.Message] = max(phases[p.Message], p.Life)
	}
	if _, err := Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	for i := range life[1:] {
		if life[i+1] < life[i] {
			t.Fatalf("signs of life get fewer: %d", life)
		}
	}
	if phases["train"] <= phases["fetching inputs"] || phases["done"] <= phases["committing results"] {
		t.Errorf("signs of life by phase: %v", phases)
	}
}

// TestPulse tells a process that works from one that waits.
func TestPulse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of others is known on Linux alone")
	}
	before, known := ProcessorTime(os.Getpid())
	after := before
	for began := time.Now(); after-before < 50*time.Millisecond && time.Since(began) < 20*time.Second; {
		after, _ = ProcessorTime(os.Getpid())
	}
	if !known || after-before < 50*time.Millisecond {
		t.Errorf("20 s of work count as %v, %v", after-before, known)
	}
	p := pulse{looked: time.Now().Add(-2 * pulseEvery), used: before - pulseEvery}
	if !p.beats(os.Getpid()) || p.beats(os.Getpid()) {
		t.Error("a process that works has no pulse, or has one before the time")
	}
	if p.looked = time.Now().Add(-2 * pulseEvery); p.beats(os.Getpid()) {
		t.Error("a process that waits has a pulse")
	}
	if p.looked = time.Now().Add(-2 * pulseEvery); !p.beats(1 << 30) {
		t.Error("what cannot be known counts as no life")
	}
}
