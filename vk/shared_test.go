package vk

import (
	"errors"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
)

func TestSharedBothWays(t *testing.T) {
	for _, imported := range []bool{true, false} {
		devices := devicesToShare(t, true, 2, imported)
		s := must.Get(NewShared(devices, 1000, "shared"))(t)
		if s.Imported() != imported {
			t.Fatalf("imported %v, want %v", s.Imported(), imported)
		}
		for i, d := range devices {
			r := NewRecorder(d)
			r.Fill(s.View(d).Slice(int64(i)*500, 500), uint32(i+1))
			run(t, d, build(t, r, BuildOptions{}))
		}
		must.Do(t, s.Carry(devices[0], devices[1], 0, 500))
		if b := s.HostOf(devices[1]); len(b) != 1000 || b[0] != 1 || b[500] != 2 || b[999] != 0 {
			t.Errorf("imported %v: bytes %v", imported, b)
		}
	}
}

func TestSharedRefuses(t *testing.T) {
	for _, imported := range []bool{true, false} {
		devices := devicesToShare(t, true, 3, imported)
		a, b, other := devices[0], devices[1], devices[2]
		share := func(size int64, list ...*Device) error {
			_, err := NewShared(list, size, "wrong")
			return err
		}
		for i, err := range []error{share(100), share(0, a), share(-1, a, b), share(100, a, a), share(100, a, nil),
			share(1<<62, a, b)} {
			if err == nil {
				t.Errorf("case %d was accepted", i)
			}
		}
		if err := share(1<<62, a); !errors.Is(err, ErrOutOfMemory) {
			t.Errorf("too much: error %v", err)
		}
		before := a.Stats()
		s := must.Get(NewShared([]*Device{a, b}, 5000, "shared"))(t)
		now, want := a.Stats(), int64(0)
		if imported {
			want = leastPage
		}
		if now.SharedBytes != want || imported && (now.InUse != before.InUse || now.AllocCalls != before.AllocCalls) {
			t.Errorf("imported %v: stats %+v", imported, now)
		}
		if err := a.Free(s.View(a)); err == nil {
			t.Error("a view of shared memory was freed")
		}
		if v := s.View(other); !v.IsZero() || s.HostOf(other) != nil || s.Carry(a, other, 0, 1) == nil {
			t.Error("a device that does not share has a part")
		}
		for _, c := range [][2]int64{{-1, 1}, {0, 5001}, {5000, 1}, {1, -1}, {1 << 62, 1 << 62}} {
			if err := s.Carry(a, b, c[0], c[1]); err == nil {
				t.Errorf("%d bytes from %d were carried", c[1], c[0])
			}
		}
		if (s.Host() != nil) != imported || len(s.View(b).Host()) != 5000 ||
			slices.ContainsFunc(s.HostOf(b), func(x byte) bool { return x != 0 }) {
			t.Errorf("imported %v: %d bytes of the host, or not all zero", imported, len(s.Host()))
		}
		v := s.View(a)
		for range 2 {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
		if s.HostOf(a) != nil || s.Host() != nil || s.Carry(a, b, 0, 1) == nil || a.Stats().SharedBytes != 0 {
			t.Error("closed memory is still there")
		}
		r := NewRecorder(a)
		r.Fill(v, 0)
		if r.Err() == nil {
			t.Error("closed memory was bound")
		}
	}
}

// TestSharedEndsWithDevices closes one device while the others go on, and then all.
func TestSharedEndsWithDevices(t *testing.T) {
	for _, imported := range []bool{true, false} {
		devices := devicesToShare(t, true, 3, imported)
		s := must.Get(NewShared(devices, 1000, "shared"))(t)
		if err := devices[0].Close(); err != nil {
			t.Error(err)
		}
		r := NewRecorder(devices[1])
		r.Fill(s.View(devices[1]), 7)
		run(t, devices[1], build(t, r, BuildOptions{}))
		if b := s.HostOf(devices[1]); len(b) != 1000 || b[0] != 7 || s.HostOf(devices[0]) != nil {
			t.Errorf("imported %v: %d bytes after another device was closed", imported, len(b))
		}
		for _, d := range devices[1:] {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
		if s.memory != nil || s.HostOf(devices[2]) != nil {
			t.Error("the memory outlived its devices")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
