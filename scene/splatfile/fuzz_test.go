package splatfile

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
)

// FuzzOpen opens any bytes as a file without a name that says anything: the content chooses the format. Nothing may
// panic, and memory must be bounded by the file's size. Formats have fuzz targets of their own beside this one.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	for _, format := range Formats() {
		if format.Write == nil || format.Open == nil {
			continue
		}
		path := filepath.Join(dir, "seed"+format.Extensions[0])
		must.Get(format.Write(path, Memory(model(5, 1), ply.Meta{}), WriteOptions{}))(f)
		data := must.Get(os.ReadFile(path))(f)
		f.Add(data)
	}
	f.Add([]byte("ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nend_header\n1\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "model")
		must.Do(t, os.WriteFile(path, data, 0o666))
		readAny(t, path, len(data))
	})
}

// FuzzCheckpoint puts any JSON into the header of a checkpoint of two splats.
func FuzzCheckpoint(f *testing.F) {
	f.Add(`{"splats":2,"sh_degree":1,"frame":{"center":[1,2,3],"scale":2,"origin":[0,0,0]},"config":{"antialiased":true}}`)
	f.Add(`{"splats":2000000000,"sh_degree":3,"frame":{"scale":1}}`)
	f.Add(`{"splats":2,"sh_degree":1,"frame":{"scale":1e-320}}`)
	f.Fuzz(func(t *testing.T, header string) {
		path := filepath.Join(t.TempDir(), "model.safetensors")
		writeTensors(t, path, header, model(2, 1))
		readAny(t, path, 4096+len(header))
	})
}

// readAny reads a file of so many bytes whose content may be anything.
func readAny(t *testing.T, path string, size int) {
	allocated := filetest.Allocated()
	defer func() {
		if grown := allocated(); grown > 64<<20+1000*uint64(size) {
			t.Errorf("%d bytes allocated for a file of %d", grown, size)
		}
	}()
	m, err := Open(path)
	if err != nil {
		if !errors.Is(err, fault.ErrData) && !errors.Is(err, fault.ErrTryAgain) || fault.Hint(err) == "" {
			t.Errorf("%v has no kind or no hint", err)
		}
		return
	}
	defer m.Close() // only read
	err = eachPiece(m, func(_ int, piece *scene.Splats) error {
		if piece.N < 1 || piece.N > PieceSplats {
			t.Errorf("a piece of %d splats", piece.N)
		}
		return nil
	})
	if err != nil && !errors.Is(err, fault.ErrData) { // such as too few splats
		t.Errorf("%v is not of kind fault.ErrData", err)
	}
	if g, ok := m.(Gatherer); ok && m.Info().N > 0 {
		into := scene.NewSplats(1, m.Info().Degree)
		if e := g.Gather([]uint32{uint32(m.Info().N - 1)}, into); (e != nil) != (err != nil) && err == nil {
			t.Errorf("the last splat: %v", e)
		}
	}
}

// FuzzTransform wants what is taken to be a similarity: a scale above 0 and a rotation, all finite.
func FuzzTransform(f *testing.F) {
	for _, text := range []string{"scale 2 rotate 10,20,30 translate 1,2,3", "0 -2 0 1 2 0 0 0 0 0 2 0",
		"1e-200 0 0 0 0 1e-200 0 0 0 0 1e-200 0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseTransform(text)
		if err != nil {
			return
		}
		back := s.R
		back[1], back[3], back[2], back[6], back[5], back[7] = s.R[3], s.R[1], s.R[6], s.R[2], s.R[7], s.R[5]
		for k, x := range product(s.R, back) {
			if want := Unmoved().R[k]; !(math.Abs(x-want) < 1e-9) {
				t.Fatalf("%q: %+v is not a rotation", text, s)
			}
		}
		if !(s.Scale > 0) || math.IsInf(s.Scale, 0) || math.IsNaN(s.T[0]+s.T[1]+s.T[2]) ||
			math.IsInf(s.T[0]+s.T[1]+s.T[2], 0) {
			t.Fatalf("%q: %+v", text, s)
		}
	})
}
