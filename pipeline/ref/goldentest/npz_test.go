package goldentest

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	must "vksplat/internal/musttest"
)

// arrayFile returns an .npy file of format version 1.
func arrayFile(descr, order, shape string, data []byte) []byte {
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }\n", descr, order, shape)
	out := append([]byte("\x93NUMPY\x01\x00"), 0, 0)
	binary.LittleEndian.PutUint16(out[8:], uint16(len(header)))
	return append(append(out, header...), data...)
}

func TestOpenNPZ(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.npz")
	f := must.Get(os.Create(path))(t)
	w := zip.NewWriter(f)
	pi := binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi))
	for name, m := range map[string]struct {
		method uint16
		data   []byte
	}{
		"scalar.npy": {zip.Store, arrayFile("<f8", "False", "()", pi)},
		"ints.npy":   {zip.Deflate, arrayFile("<i4", "False", "(2,)", []byte{1, 0, 0, 0, 255, 255, 255, 255})},
		"bytes.npy":  {zip.Deflate, arrayFile("|u1", "False", "(1, 3)", []byte{7, 8, 255})},
		"flags.npy":  {zip.Store, arrayFile("|b1", "False", "(2,)", []byte{1, 0})},
		"empty.npy":  {zip.Store, arrayFile("<f4", "False", "(0, 3)", nil)},
	} {
		member := must.Get(w.CreateHeader(&zip.FileHeader{Name: name, Method: m.method}))(t)
		must.Get(member.Write(m.data))(t)
	}
	must.Do(t, w.Close())
	must.Do(t, f.Close())
	a := must.Get(openNPZ(path))(t)
	if got := a.Arrays["scalar"]; got.Float(0) != math.Pi || len(got.Shape) != 0 {
		t.Errorf("scalar: %+v", got)
	}
	if got := a.Arrays["ints"]; got.Ints[1] != -1 || got.Float(0) != 1 {
		t.Errorf("ints: %+v", got)
	}
	if got := a.Arrays["bytes"]; got.Ints[2] != 255 || got.Shape[1] != 3 {
		t.Errorf("bytes: %+v", got)
	}
	if got := a.Arrays["flags"]; got.Ints[0] != 1 || got.Ints[1] != 0 {
		t.Errorf("flags: %+v", got)
	}
	if got := a.Arrays["empty"]; got.Len() != 0 || got.Shape[1] != 3 {
		t.Errorf("empty: %+v", got)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := arrayFile("<f4", "False", "(2,)", make([]byte, 8))
	for name, data := range map[string][]byte{
		"nothing":         nil,
		"magic":           []byte("not an array at all"),
		"header cut":      good[:20],
		"data cut":        good[:len(good)-1],
		"data long":       append(append([]byte{}, good...), 0),
		"big endian":      arrayFile(">f4", "False", "(2,)", make([]byte, 8)),
		"objects":         arrayFile("|O", "False", "(2,)", make([]byte, 8)),
		"fortran":         arrayFile("<f4", "True", "(2, 1)", make([]byte, 8)),
		"negative":        arrayFile("<f4", "False", "(-2,)", make([]byte, 8)),
		"huge":            arrayFile("<f4", "False", "(4294967296, 4294967296)", nil),
		"no shape":        arrayFile("<f4", "False", "", nil),
		"version 2 short": []byte("\x93NUMPY\x02\x00\x00\x00"),
	} {
		if a, err := decode(data); err == nil {
			t.Errorf("%s: decoded as %+v", name, a)
		}
	}
	if _, err := openNPZ(filepath.Join(t.TempDir(), "missing.npz")); err == nil {
		t.Error("a missing file opens")
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(arrayFile("<f4", "False", "(2,)", make([]byte, 8)))
	f.Add(arrayFile("|u1", "True", "()", []byte{1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := decode(data); err == nil && a.Len() > len(data) {
			t.Errorf("%d elements out of %d bytes", a.Len(), len(data))
		}
	})
}
