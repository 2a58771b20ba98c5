package splatfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"vksplat/scene"
)

// The format .splat of https://github.com/antimatter15/splat: 32 bytes a splat and no header. Three float32 of position, three of scale (lengths), a byte each of
// red, green, blue and opacity, and of the rotation's w, x, y and z as 128 (q + 1). Viewers show splats as they come, so that important ones stand first.
var dotSplat = &Format{
	Name:       dotSplatName,
	Extensions: []string{".splat"},
	Open:       openDotSplat,
	Write:      writeDotSplat,
}

const (
	dotSplatName = "splat"
	dotSplatRow  = 32 // bytes
)

func openDotSplat(path string) (Source, error) {
	const op = "read splat"
	f, size, err := openRows(op, path)
	if err != nil {
		return nil, err
	}
	if n := size / dotSplatRow; size%dotSplatRow != 0 || n > math.MaxUint32 {
		_ = f.Close() // the size is what is to report
		return nil, fileError(op, path, fmt.Errorf("%d bytes are not a whole number of splats of %d bytes, or too many", size, dotSplatRow), "")
	}
	info := Info{Format: dotSplatName, N: int(size / dotSplatRow)}
	return &rowSource{info, op, f, func(first, n int, into *scene.Splats, at int, room *[]byte) error {
		return loadDotSplat(f, first, n, into, at, room)
	}}, nil
}

func loadDotSplat(f *os.File, first, n int, into *scene.Splats, at int, room *[]byte) error {
	rows, err := readRows(f, 0, dotSplatRow, first, n, room)
	if err != nil {
		return err
	}
	for i := range n {
		row := rows[dotSplatRow*i : dotSplatRow*(i+1)]
		for axis := range 3 {
			into.Means[3*(at+i)+axis] = float32At(row, axis)
			into.LogScales[3*(at+i)+axis] = lengthLog(float64(float32At(row, 3+axis)))
			into.SH[3*(at+i)+axis] = byteColors[row[24+axis]]
		}
		into.LogitOpacities[at+i] = byteLogits[row[27]]
		quat := func(j int) float64 { return float64(int(row[28+j])-128) / 128 }
		setQuat(into.Quats[4*(at+i):], quat(0), quat(1), quat(2), quat(3))
	}
	return nil
}

// float32At is number i of a row of float32.
func float32At(row []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
}

func writeDotSplat(path string, model Source, o WriteOptions) (lost []string, err error) {
	g, free, err := gatherable(model, o.tempDir(path))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	order, err := importanceOrder(g)
	if err != nil {
		return nil, err
	}
	info := g.Info()
	if len(order) != info.N {
		return nil, fmt.Errorf("splatfile: write splat: %d splats announced, %d given", info.N, len(order))
	}
	cut := 0
	err = scene.WriteFile(path, func(w io.Writer) (err error) {
		cut, err = encodeDotSplat(w, g, order)
		return err
	})
	if err != nil {
		return nil, err
	}
	if info.Degree > 0 {
		lost = append(lost, fmt.Sprintf("the spherical harmonics of degree 1 to %d: the format has one colour a splat", info.Degree))
	}
	if cut > 0 {
		lost = append(lost, fmt.Sprintf("%d colour values below 0 or above 1 became 0 or 1", cut))
	}
	if info.Meta.Antialiased {
		lost = append(lost, "that the model is antialiased (SplatRenderMode: mip): the format has no place for it, and viewers draw small splats too thick")
	}
	if info.Meta.Origin != nil {
		lost = append(lost, "the origin that was subtracted from the coordinates: the format has no place for it")
	}
	return lost, nil
}

// encodeDotSplat writes the splats in an order, and counts colours outside 0 to 1.
func encodeDotSplat(w io.Writer, g Gatherer, order []uint32) (cut int, err error) {
	const batch = 1024
	info := g.Info()
	room := scene.NewSplats(min(info.N, batch), info.Degree)
	rows := make([]byte, 0, dotSplatRow*room.N)
	for lo := 0; lo < len(order); lo += batch {
		ids := order[lo:min(lo+batch, len(order))]
		s := room.Slice(0, len(ids))
		if err := g.Gather(ids, s); err != nil {
			return 0, err
		}
		if err := checkSplats(s, ids); err != nil {
			return 0, err
		}
		rows = rows[:0]
		for i := range s.N {
			rows = appendDotSplat(rows, s, i, &cut)
		}
		if _, err := w.Write(rows); err != nil {
			return 0, err
		}
	}
	return cut, nil
}

func appendDotSplat(to []byte, s *scene.Splats, i int, cut *int) []byte {
	for _, x := range s.Means[3*i : 3*i+3] {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(x))
	}
	for _, x := range s.LogScales[3*i : 3*i+3] {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(min(math.Exp(float64(x)), math.MaxFloat32))))
	}
	for _, x := range s.SH[3*s.K()*i:][:3] {
		color := float64(float64(x)*scene.SH0) + 0.5
		if color < -0.5/255 || color > 255.5/255 {
			*cut++
		}
		to = append(to, uint8(unit(color, 255)))
	}
	to = append(to, opacityByte(s.LogitOpacities[i]))
	for _, x := range unitQuat(s.Quats[4*i : 4*i+4]) {
		to = append(to, uint8(whole((x+1)*128, 255)))
	}
	return to
}
