package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// file has the numbers 0, 1, 2... in the order of its bytes.
func file(version byte, kind, order, sizes string, numbers int) []byte {
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }\n", kind, order, sizes)
	b := append([]byte("\x93NUMPY"), version, 0)
	if version > 1 {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(head)))
	} else {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(head)))
	}
	b = append(b, head...)
	for i := range numbers {
		if kind == "<f4" {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i)+0.25))
		} else {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(i)+0.25))
		}
	}
	return b
}

func TestMatrix(t *testing.T) {
	for version := byte(1); version <= 3; version++ {
		for _, kind := range []string{"<f4", "<f8"} {
			for order, want := range map[string][][]float64{
				"False": {{0.25, 1.25, 2.25}, {3.25, 4.25, 5.25}},
				"True":  {{0.25, 2.25, 4.25}, {1.25, 3.25, 5.25}},
			} {
				a := must.Get(Parse(file(version, kind, order, "2, 3", 6)))(t)
				if got, err := a.Matrix(3); err != nil || !slices.EqualFunc(got, want, slices.Equal) {
					t.Errorf("version %d of %s, Fortran %s: %v, %v", version, kind, order, got, err)
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	whole := file(1, "<f8", "False", "2, 3", 6)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":      {nil, "not an NPY file"},
		"other":      {[]byte("PK\x03\x04 and so on"), "not an NPY file"},
		"version":    {file(4, "<f8", "False", "2, 3", 6), "version 4"},
		"header":     {whole[:30], "ends early"},
		"claim":      {append([]byte("\x93NUMPY\x02\x00"), 255, 255, 255, 255), "ends early"},
		"short":      {whole[:len(whole)-1], "ends early"},
		"records":    {bytes.Replace(whole, []byte("'<f8'"), []byte("[('a', '<f8')]"), 1), "[('a', '<f8'"},
		"big endian": {file(1, ">f8", "False", "2, 3", 6), ">f8 with the sizes (2, 3)"},
		"integers":   {file(1, "<i8", "False", "2, 3", 6), "<i8"},
		"transposed": {file(1, "<f8", "False", "3, 2", 6), "N rows of 3"},
		"flat":       {file(1, "<f8", "False", "6,", 6), "sizes (6,)"},
		"none":       {file(1, "<f8", "False", "0, 3", 0), "sizes (0, 3)"},
		"huge":       {file(1, "<f8", "False", "4611686018427387904, 3", 6), "ends early"},
		"too huge":   {file(1, "<f8", "False", "99999999999999999999, 3", 6), "out of range"},
	} {
		a, err := Parse(c.data)
		if err == nil {
			_, err = a.Matrix(3)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
