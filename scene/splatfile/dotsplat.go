package splatfile

import (
	"errors"
	"fmt"
	"io"
	"math"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// The format .splat of https://github.com/antimatter15/splat: 32 bytes a splat and no header. Three float32 of
// position, three of scale (lengths), a byte each of red, green, blue and opacity, and of the rotation's w, x, y and z
// as 128 (q + 1). Viewers show splats as they come, so that important ones stand first.
var dotSplat = &Format{
	Name:       dotSplatName,
	Extensions: []string{".splat"},
	Plain:      true,
	Open:       openDotSplat,
	Write:      writer("write splat", writeDotSplat),
}

const (
	dotSplatName = "splat"
	dotSplatRow  = 32 // bytes
	// dotSplatBatch is how many splats are gathered at a time for writing.
	dotSplatBatch = 1024
)

func openDotSplat(path string) (Source, error) {
	return openRows("read splat", path, func(f io.ReaderAt, size int64, info *Info) (func(int, *scene.Splats) error,
		error) {
		if n := size / dotSplatRow; size%dotSplatRow != 0 || n > math.MaxUint32 {
			return nil, fmt.Errorf("%d bytes are not a whole number of splats of %d bytes, or too many", size,
				dotSplatRow)
		}
		*info = Info{Format: dotSplatName, N: int(size / dotSplatRow)}
		var room []byte
		return func(first int, into *scene.Splats) error {
			rows, err := readRows(f, 0, dotSplatRow, first, into.N, &room)
			if err != nil {
				return err
			}
			for i := range into.N {
				unpackDotSplat(rows[dotSplatRow*i:dotSplatRow*(i+1)], into, i)
			}
			return nil
		}, nil
	})
}

func unpackDotSplat(row []byte, into *scene.Splats, i int) {
	for axis := range 3 {
		into.Means[3*i+axis] = floatAt(row, axis)
		into.LogScales[3*i+axis] = lengthLog(float64(floatAt(row, 3+axis)))
		into.SH[3*i+axis] = byteColors[row[24+axis]]
	}
	into.LogitOpacities[i] = byteLogits[row[27]]
	quat := func(j int) float64 { return float64(int(row[28+j])-128) / 128 }
	setQuat(into.Quats[4*i:], quat(0), quat(1), quat(2), quat(3))
}

func writeDotSplat(path string, model Source, o WriteOptions) (lost []string, err error) {
	m, err := arrange(model, o.FolderFor(path), importanceOrder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.free()) }()
	cut := 0
	err = atomicfile.Write(path, func(w io.Writer) error {
		var rows []byte
		return m.each(dotSplatBatch, func(piece *scene.Splats) error {
			rows = rows[:0]
			for i := range piece.N {
				rows = appendDotSplat(rows, piece, i, &cut)
			}
			_, err := w.Write(rows)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	info := m.Info()
	if info.Degree > 0 {
		lost = append(lost, fmt.Sprintf("the format .splat has one colour per splat and cannot store spherical "+
			"harmonics of degree 1 to %d", info.Degree))
	}
	lost = lostSome(lost, cut, "colour values below 0 or above 1 became 0 or 1")
	return append(lost, lostOf(info, "the format .splat", false)...), nil
}

func appendDotSplat(to []byte, s *scene.Splats, i int, cut *int) []byte {
	to = appendFloats(to, s.Means[3*i:3*i+3]...)
	for _, x := range s.LogScales[3*i : 3*i+3] {
		to = appendFloats(to, float32(min(math.Exp(float64(x)), math.MaxFloat32)))
	}
	for _, x := range s.SH[3*s.K()*i:][:3] {
		b, outside := byteOf(255 * colorOf(x))
		if outside {
			*cut++
		}
		to = append(to, b)
	}
	to = append(to, opacityByte(s.LogitOpacities[i]))
	for _, x := range s.Quats[4*i : 4*i+4] {
		to = append(to, uint8(whole((float64(x)+1)*128, 255)))
	}
	return to
}
