package vk

import "testing"

func TestSharedBothWays(t *testing.T) {
	for _, imported := range []bool{true, false} {
		if !imported {
			t.Setenv(limitsVariable, writeFile(t, `{"externalMemoryHost": false}`))
		}
		in := testInstance(t)
		var devices []*Device
		for range 2 {
			devices = append(devices, openDevice(t, in, DeviceOptions{Budget: 64 << 20}))
		}
		s := must(NewShared(devices, 1000, "shared"))(t)
		if s.Imported() != imported {
			t.Fatalf("imported %v, want %v", s.Imported(), imported)
		}
		for i, d := range devices {
			r := NewRecorder(d)
			r.Fill(s.View(d).Slice(int64(i)*500, 500), uint32(i+1))
			run(t, d, build(t, r, BuildOptions{}))
		}
		if err := s.Carry(devices[0], devices[1], 0, 500); err != nil {
			t.Fatal(err)
		}
		if b := s.HostOf(devices[1]); len(b) != 1000 || b[0] != 1 || b[500] != 2 || b[999] != 0 {
			t.Errorf("imported %v: bytes %v", imported, b)
		}
	}
}
