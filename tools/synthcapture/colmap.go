package main

import (
	"encoding/binary"
	"io"
	"math"
	"path/filepath"

	"vksplat/scene"
	"vksplat/scene/colmap"
)

// writeModel writes a binary model of COLMAP with what a reconstruction has beside poses and points: errors, tracks and
// the 2D points that they name. Point i is in the photos i, i+1 and for every second point i+2, modulo their number,
// wherever it is there: readers of this program pass over all that.
func writeModel(dir string, cams []scene.Camera, points []scene.Point, seed uint64) error {
	if err := colmap.Write(dir, cams, nil); err != nil { // cameras.bin is right then
		return err
	}
	t := tracks{cams: cams, points: points}
	if err := writeFile(filepath.Join(dir, "images.bin"), t.writeImages); err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "points3D.bin"), func(w io.Writer) error { return t.writePoints(w, seed) })
}

// tracks says which point is in which photo.
type tracks struct {
	cams   []scene.Camera
	points []scene.Point
}

// each calls f for the points in photo i with their order there.
func (t *tracks) each(photo int, f func(order, point int)) {
	n, order := len(t.cams), 0
	for back := range 3 {
		for p := (photo - back + n) % n; p < len(t.points); p += n {
			if back == 2 && p%2 == 1 {
				continue
			}
			f(order, p)
			order++
		}
	}
}

// count returns the number of points in a photo.
func (t *tracks) count(photo int) (n int) {
	t.each(photo, func(int, int) { n++ })
	return n
}

func (t *tracks) writeImages(w io.Writer) error {
	le := binary.LittleEndian
	if _, err := w.Write(le.AppendUint64(nil, uint64(len(t.cams)))); err != nil {
		return err
	}
	for i := range t.cams {
		cam := &t.cams[i]
		b := le.AppendUint32(nil, uint32(i+1))
		q := cam.Quat()
		b = appendFloats(b, q[:]...)
		b = appendFloats(b, cam.T[:]...)
		b = le.AppendUint32(b, 1)
		b = append(append(b, cam.Name...), 0)
		b = le.AppendUint64(b, uint64(t.count(i)))
		t.each(i, func(_, p int) {
			at := cam.ToCamera(t.points[p].Pos)
			b = appendFloats(b, cam.Fx*at[0]/at[2]+cam.Cx, cam.Fy*at[1]/at[2]+cam.Cy)
			b = le.AppendUint64(b, uint64(p+1))
		})
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func (t *tracks) writePoints(w io.Writer, seed uint64) error {
	le := binary.LittleEndian
	if _, err := w.Write(le.AppendUint64(nil, uint64(len(t.points)))); err != nil {
		return err
	}
	// By point and place in its track: the order in the photo.
	orders := make([][3]int32, len(t.points))
	for i := range t.cams {
		t.each(i, func(order, p int) {
			orders[p][(i-p%len(t.cams)+len(t.cams))%len(t.cams)] = int32(order)
		})
	}
	errors := newNoise(seed, -1)
	var b []byte
	for p := range t.points {
		b = le.AppendUint64(b[:0], uint64(p+1))
		b = appendFloats(b, t.points[p].Pos[:]...)
		b = append(b, t.points[p].Color[:]...)
		b = appendFloats(b, 0.2+float64(errors.next()>>32)/(1<<32)) // pixels
		length := 3 - p%2
		b = le.AppendUint64(b, uint64(length))
		for k := range length {
			b = le.AppendUint32(b, uint32((p+k)%len(t.cams)+1))
			b = le.AppendUint32(b, uint32(orders[p][k]))
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

func appendFloats(b []byte, values ...float64) []byte {
	for _, v := range values {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(v))
	}
	return b
}
