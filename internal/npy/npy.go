// Package npy reads the headers of NumPy's array files.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// Array is an array of numbers as its file has it.
type Array struct {
	Kind    string // NumPy's type of a number, as in <f4
	Sizes   string // Shape as the header has it
	Shape   []int
	Fortran bool   // the first index runs fastest
	Data    []byte // what follows the header, whatever Shape claims
}

var header = regexp.MustCompile(`'descr': *'([<|>=]?[a-z]\d)'.*'fortran_order': *(\w+).*'shape': *\(([\d, ]*)\)`)

var errEnds = errors.New("the file ends early")

// Parse reads a file of version 1, 2 or 3.
func Parse(data []byte) (*Array, error) {
	if len(data) < 12 || string(data[:6]) != "\x93NUMPY" {
		return nil, errors.New("not an NPY file")
	}
	start, n := 10, int(binary.LittleEndian.Uint16(data[8:]))
	switch data[6] {
	case 1:
	case 2, 3:
		start, n = 12, int(min(binary.LittleEndian.Uint32(data[8:]), math.MaxInt32))
	default:
		return nil, fmt.Errorf("it is an NPY file of version %d; versions 1 to 3 are read", data[6])
	}
	if n > len(data)-start {
		return nil, errEnds
	}
	found := header.FindSubmatch(data[start : start+n])
	if found == nil {
		return nil, fmt.Errorf("it does not describe a numeric array: %.100q", data[start:start+n])
	}
	a := &Array{Kind: string(found[1]), Sizes: string(found[3]), Fortran: string(found[2]) == "True",
		Data: data[start+n:]}
	for _, word := range strings.FieldsFunc(a.Sizes, func(r rune) bool { return r == ',' || r == ' ' }) {
		size, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		a.Shape = append(a.Shape, size)
	}
	return a, nil
}

// Matrix gives the rows of an array of <f4 or <f8 that has a number of columns.
func (a *Array) Matrix(columns int) ([][]float64, error) {
	size := map[string]int{"<f4": 4, "<f8": 8}[a.Kind]
	if size == 0 || len(a.Shape) != 2 || a.Shape[0] < 1 || a.Shape[1] != columns {
		return nil, fmt.Errorf("its array is %s with the sizes (%s); <f8 or <f4 with N rows of %d is expected", a.Kind,
			a.Sizes, columns)
	}
	rows := make([][]float64, min(a.Shape[0], len(a.Data)/(columns*size)))
	if len(rows) < a.Shape[0] {
		return nil, errEnds
	}
	for i := range rows {
		rows[i] = make([]float64, columns)
		for k := range rows[i] {
			at := i*columns + k
			if a.Fortran {
				at = k*len(rows) + i
			}
			if size == 4 {
				rows[i][k] = float64(math.Float32frombits(binary.LittleEndian.Uint32(a.Data[size*at:])))
			} else {
				rows[i][k] = math.Float64frombits(binary.LittleEndian.Uint64(a.Data[size*at:]))
			}
		}
	}
	return rows, nil
}
