//go:build unix

package task

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	must "vksplat/internal/musttest"
)

// TestPulseOfPrograms counts what the programs that a process runs use, also once they have ended.
func TestPulseOfPrograms(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of others is known on Linux alone")
	}
	before, _ := processorTime(os.Getpid())
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	must.Do(t, cmd.Start())
	var during time.Duration
	for began := time.Now(); during-before < time.Second/4 && time.Since(began) < 20*time.Second; {
		time.Sleep(20 * time.Millisecond) // which takes next to nothing
		during, _ = processorTime(os.Getpid())
	}
	_ = errors.Join(cmd.Process.Kill(), cmd.Wait()) // it is killed
	after, known := processorTime(os.Getpid())
	if !known || during-before < time.Second/4 || after < during {
		t.Errorf("%v before, %v while a program works, %v once it has ended", before, during, after)
	}
}

// TestPulse tells a process that works from one that waits.
func TestPulse(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the processor time of others is known on Linux alone")
	}
	before, known := processorTime(os.Getpid())
	after := before
	for began := time.Now(); after-before < 50*time.Millisecond && time.Since(began) < 20*time.Second; {
		after, _ = processorTime(os.Getpid())
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
