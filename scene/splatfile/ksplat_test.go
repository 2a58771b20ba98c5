package splatfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/shaders/layout"
)

// ksplatBlock is the side of the cubes that share a bucket in made files.
const ksplatBlock = 5

// madeKsplat encodes models, a section each, with buckets of 8 splats. order is the models' splats, one model after the
// other, as they are in the file.
func madeKsplat(level int, models ...*scene.Splats) (data []byte, order []int) {
	var body []byte
	headers, splats := []byte(nil), 0
	for _, s := range models {
		h, rows, ids := madeSection(level, s)
		for _, id := range ids {
			order = append(order, splats+id)
		}
		headers, body, splats = append(headers, h...), append(body, rows...), splats+s.N
	}
	data = make([]byte, ksplatHeader)
	data[1] = 1
	put := func(i, value int) { binary.LittleEndian.PutUint32(data[4*i:], uint32(value)) }
	put(1, len(models))
	put(2, len(models))
	put(3, splats)
	put(4, splats)
	data[20] = byte(level)
	binary.LittleEndian.PutUint32(data[36:], math.Float32bits(-2))
	binary.LittleEndian.PutUint32(data[40:], math.Float32bits(2))
	return append(append(data, headers...), body...), order
}

// madeSection encodes one section.
func madeSection(level int, s *scene.Splats) (header, body []byte, order []int) {
	const size = 8
	buckets := map[[3]int][]int{}
	cells := [][3]int{}
	var full, partly [][]int
	cellOf := func(i int) (cell [3]int) {
		for axis := range cell {
			cell[axis] = int(math.Floor(float64(s.Means[3*i+axis]) / ksplatBlock))
		}
		return cell
	}
	for i := range s.N {
		cell := cellOf(i)
		if buckets[cell] == nil {
			cells = append(cells, cell)
		}
		if buckets[cell] = append(buckets[cell], i); len(buckets[cell]) == size {
			full, buckets[cell] = append(full, buckets[cell]), []int{}
		}
	}
	for _, cell := range cells {
		partly = append(partly, buckets[cell]) // some are empty
	}
	if level > 0 {
		for _, b := range partly {
			body = binary.LittleEndian.AppendUint32(body, uint32(len(b)))
		}
		for i, b := range append(full, partly...) {
			cell := [3]int{}
			if i >= len(full) {
				cell = cells[i-len(full)]
			} else {
				cell = cellOf(b[0])
			}
			for _, x := range cell {
				body = binary.LittleEndian.AppendUint32(body, math.Float32bits((float32(x)+0.5)*ksplatBlock))
			}
		}
	}
	for _, b := range append(full, partly...) {
		for _, i := range b {
			body, order = appendKsplat(body, level, s, i), append(order, i)
		}
	}
	header = make([]byte, ksplatSection)
	for i, value := range map[int]int{0: s.N, 1: s.N, 10: s.Degree} {
		binary.LittleEndian.PutUint32(header[4*i:], uint32(value))
	}
	if level > 0 {
		for i, value := range map[int]uint32{2: size, 3: uint32(len(full) + len(partly)),
			4: math.Float32bits(ksplatBlock), 5: 12, 6: 32767, 8: uint32(len(full)), 9: uint32(len(partly))} {
			binary.LittleEndian.PutUint32(header[4*i:], value)
		}
	}
	return header, body, order
}

// appendKsplat encodes a splat.
func appendKsplat(to []byte, level int, s *scene.Splats, i int) []byte {
	number := func(x float64) {
		if level == 0 {
			to = binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(x)))
		} else {
			to = binary.LittleEndian.AppendUint16(to, nearestHalf(x))
		}
	}
	for _, x := range s.Means[3*i : 3*i+3] {
		if level == 0 {
			number(float64(x))
			continue
		}
		centre := (math.Floor(float64(x)/ksplatBlock) + 0.5) * ksplatBlock
		to = binary.LittleEndian.AppendUint16(to, uint16(math.Round((float64(x)-centre)*32767/ksplatBlock*2)+32767))
	}
	for _, x := range s.LogScales[3*i : 3*i+3] {
		number(math.Exp(float64(x)))
	}
	for _, x := range direction(s.Quats[4*i : 4*i+4]) {
		number(x)
	}
	k := s.K()
	sh := s.SH[3*k*i : 3*k*(i+1)]
	for _, x := range sh[:3] {
		to = append(to, uint8(unit(colorOf(x), 255)))
	}
	to = append(to, opacityByte(s.LogitOpacities[i]))
	for _, ends := range [][2]int{{1, 4}, {4, 9}} {
		for c := range 3 {
			for j := ends[0]; j < min(ends[1], k); j++ {
				if x := float64(sh[3*j+c]); level == 2 {
					to = append(to, uint8(unit((x+2)/4, 255)))
				} else {
					number(x)
				}
			}
		}
	}
	return to
}

// nearestHalf is the half float nearest to a number that is small enough.
func nearestHalf(x float64) uint16 {
	bits := uint16(sort.Search(0x7bff, func(h int) bool { return float64(layout.HalfValue(uint16(h))) >= math.Abs(x) }))
	if bits > 0 && math.Abs(x)-float64(layout.HalfValue(bits-1)) < float64(layout.HalfValue(bits))-math.Abs(x) {
		bits--
	}
	if x < 0 {
		bits |= 1 << 15
	}
	return bits
}

func TestKsplat(t *testing.T) {
	dir := t.TempDir()
	for level := range 3 {
		for _, n := range []int{0, 1, 7, 8, 9, 300} {
			for degree := range ksplatDegree + 1 {
				// The second section is of another degree than the first and the third.
				models := []*scene.Splats{madeModel(n, degree, "spread"), madeModel(n/2, 0, "point"),
					madeModel(13, min(degree, 1), "spread")}
				for i := range models[1].Means {
					models[1].Means[i] = min(models[1].Means[i], 3000)
				}
				data, order := madeKsplat(level, models...)
				path := filepath.Join(dir, fmt.Sprintf("%d_%d_%d.ksplat", level, n, degree))
				must.Do(t, os.WriteFile(path, data, 0o600))
				if !ksplat.Detect(data[:headBytes]) {
					t.Error("not detected")
				}
				got, _ := readModel(t, ksplat, path)
				if want := min(degree, 2); got.N != n+n/2+13 || n > 0 && got.Degree != want {
					t.Fatalf("%d splats of degree %d", got.N, got.Degree)
				}
				checkKsplat(t, level, got, models, order)
			}
		}
	}
}

// checkKsplat compares a file with the models that it was made of.
func checkKsplat(t *testing.T, level int, got *scene.Splats, models []*scene.Splats, order []int) {
	t.Helper()
	position, relative, sh := 0.0, 1e-7, 1e-7 // bounds of errors
	switch level {
	case 1:
		position, relative, sh = ksplatBlock/65534.0*0.501, 1.0/2048, 1.0/2048
	case 2:
		position, relative, sh = ksplatBlock/65534.0*0.501, 1.0/2048, 0.501*4/255
	}
	for i, id := range order {
		s := models[0]
		for _, next := range models[1:] {
			if id < s.N {
				break
			}
			id, s = id-s.N, next
		}
		for axis := range 3 {
			x := float64(s.Means[3*id+axis])
			near(t, "position", i, float64(got.Means[3*i+axis]), x, position+math.Abs(x)*1e-7)
			// Half floats become coarse below 6e-5.
			scale := math.Exp(float64(s.LogScales[3*id+axis]))
			near(t, "scale", i, math.Exp(float64(got.LogScales[3*i+axis])), scale,
				scale*(relative+1e-6)+1e-13+float64(min(level, 1))*3.1e-8)
			near(t, "colour", i, colorOf(got.SH[3*got.K()*i+axis]), min(max(colorOf(s.SH[3*s.K()*id+axis]), 0), 1),
				0.5/255+1e-6)
		}
		near(t, "rotation", i, quatError(got.Quats[4*i:4*i+4], s.Quats[4*id:4*id+4]), 0, 2*relative)
		near(t, "opacity", i, sigmoid(got.LogitOpacities[i]), sigmoid(s.LogitOpacities[id]), 0.5/255+1e-6)
		for j := 3; j < 3*got.K(); j++ {
			want := 0.0
			if j < 3*s.K() {
				want = float64(s.SH[3*s.K()*id+j])
			}
			bound := sh * max(1, math.Abs(want))
			if j >= 3*s.K() {
				bound = 0
			}
			near(t, "sh", i, float64(got.SH[3*got.K()*i+j]), want, bound)
		}
	}
}

func TestKsplatForeign(t *testing.T) {
	got, _ := readModel(t, ksplat, foreignSplats(t, "splat-transform/minimal.ksplat"))
	want, _, err := ply.Read(foreignSplats(t, "converted_by_splat-transform/minimal.ksplat.ply"))
	if err != nil {
		t.Fatal(err)
	}
	checkBytesModel(t, got, want, 1e-6)
}

func TestKsplatRefused(t *testing.T) {
	good, _ := madeKsplat(1, madeModel(300, 1, "spread"))
	with := func(at int, value uint32) []byte {
		data := bytes.Clone(good)
		binary.LittleEndian.PutUint32(data[at:], value)
		return data
	}
	const most = math.MaxUint32
	for what, data := range map[string][]byte{
		"nothing":            nil,
		"half a header":      good[:2000],
		"no section header":  good[:ksplatHeader+1000],
		"cut short":          good[:len(good)-1],
		"version 1":          with(0, 1),
		"version 0.0":        with(0, 0),
		"level 3":            with(20, 3),
		"many sections":      with(4, most),
		"two sections":       with(4, 2),
		"many splats":        with(16, most),
		"one splat less":     with(16, 299),
		"many in a section":  with(ksplatHeader, most),
		"much room":          with(ksplatHeader+4, most),
		"too little room":    with(ksplatHeader+4, 299),
		"large buckets":      with(ksplatHeader+8, most),
		"no bucket's size":   with(ksplatHeader+8, 0),
		"many buckets":       with(ksplatHeader+12, most),
		"long bucket":        with(ksplatHeader+20, 0xffff),
		"short bucket":       with(ksplatHeader+20, 8),
		"many full buckets":  with(ksplatHeader+32, most),
		"many other buckets": with(ksplatHeader+36, most),
		"degree 3":           with(ksplatHeader+40, 3),
		"a degree too high":  with(ksplatHeader+40, 2),
		"a bucket too short": with(ksplatHeader+ksplatSection, 0),
	} {
		refused(t, ksplat, what, data)
	}
}

func FuzzKsplat(f *testing.F) {
	for level := range 3 {
		data, _ := madeKsplat(level, madeModel(20, level, "spread"), madeModel(3, 0, "spread"))
		f.Add(data)
	}
	fuzzReader(f, ksplat)
}
