package vk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// TestLostNames wants the error of a lost device to name the program that was awaited, and the pass of a serial one.
func TestLostNames(t *testing.T) {
	limits := filepath.Join(t.TempDir(), "limits.json")
	must.Do(t, os.WriteFile(limits, []byte(`{"lostAfter": 1}`), 0o644))
	t.Setenv(limitsVariable, limits)
	for _, c := range []struct {
		serial bool
		want   string
	}{{false, "doomed on "}, {true, "doomed, pass fill second on "}} {
		in := testInstance(t)
		info, _, err := in.Select("auto")
		must.Do(t, err)
		d := must.Get(in.NewDevice(info, DeviceOptions{Budget: 64 << 20}))(t)
		a, b := must.Get(d.Alloc(Readback, 64, "first"))(t), must.Get(d.Alloc(Readback, 64, "second"))(t)
		r := NewRecorder(d)
		r.Fill(a, 1)
		r.Fill(b, 2)
		pool := d.NewScratchPool()
		p := must.Get(r.Build("doomed", pool, BuildOptions{Serial: c.serial}))(t)
		run(t, d, p)
		if at := Host(p.reached); c.serial && at[0] != 2 {
			t.Errorf("reached op %d", at[0])
		}
		s := d.NewSubmission()
		s.Add(p)
		ticket := must.Get(d.Submit(s))(t)
		if at := Host(p.reached); c.serial {
			at[0] = 2 // as if it had got so far
		}
		if err := d.Wait(ticket); !errors.Is(err, ErrDeviceLost) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
		_ = d.Close() // it is lost
	}
}
