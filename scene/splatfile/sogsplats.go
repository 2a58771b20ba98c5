package splatfile

import (
	"fmt"
	"math"

	"vksplat/scene"
)

// Read hands out all splats.
func (s *sogSource) Read(put func(piece *scene.Splats) error) error {
	if err := s.load(); err != nil {
		return s.bad(err)
	}
	room := scene.NewSplats(min(s.info.N, PieceSplats), s.info.Degree)
	for lo := 0; lo < s.info.N; lo += PieceSplats {
		piece := room.Slice(0, min(PieceSplats, s.info.N-lo))
		for i := range piece.N {
			s.data.splat(piece, i, lo+i)
		}
		if err := put(piece); err != nil {
			return err
		}
	}
	return nil
}

// Gather reads splats in any order.
func (s *sogSource) Gather(ids []uint32, into *scene.Splats) error {
	if err := s.load(); err != nil {
		return s.bad(err)
	}
	for i, id := range ids {
		if int64(id) >= int64(s.info.N) {
			return fmt.Errorf("splatfile: gather splats: splat %d of %d", id, s.info.N)
		}
		s.data.splat(into, i, int(id))
	}
	return nil
}

// splat decodes splat id into splat i of a model.
func (d *sogData) splat(into *scene.Splats, i, id int) {
	for axis := range 3 {
		v := int(d.low[3*id+axis]) | int(d.high[3*id+axis])<<8
		into.Means[3*i+axis] = float32(sogUnlog(d.start[axis] + d.perStep[axis]*(float64(v)/65535)))
		into.LogScales[3*i+axis] = d.scaleTable[axis].value[d.scales[3*id+axis]]
	}
	quat := sogUnpackQuat([4]uint8(d.quats[4*id:]))
	copy(into.Quats[4*i:4*i+4], quat[:])
	into.LogitOpacities[i] = d.colour[3].value[d.sh0[4*id+3]]
	width := 3 * into.K()
	sh := into.SH[width*i : width*(i+1)]
	for c := range 3 {
		sh[c] = d.colour[c].value[d.sh0[4*id+c]]
	}
	if d.labels == nil {
		return
	}
	// The palette has a coefficient's three channels in a pixel: the order of scene.Splats. What is beyond it is no colour at all.
	at := (width - 3) * (int(d.labels[2*id]) | int(d.labels[2*id+1])<<8)
	if at+width-3 > len(d.palette) {
		clear(sh[3:])
		return
	}
	copy(sh[3:], d.palette[at:])
}

// sogLog is the scale on which means are quantised: near the origin of the capture finer than far away.
func sogLog(x float64) float64 { return math.Copysign(math.Log1p(math.Abs(x)), x) }

// sogUnlog is the inverse of sogLog.
func sogUnlog(x float64) float64 { return math.Copysign(math.Expm1(math.Abs(x)), x) }

// sogOpacity gives the opacity of a logit.
func sogOpacity(logit float32) float64 { return 1 / (1 + math.Exp(-float64(logit))) }

// sogLargest is what the alpha of an image of rotations counts from: the number of the largest component, which is left out.
const sogLargest = 252

// sogPackQuat stores three components of a rotation in 8 bits each, sqrt(2) times as large because those that are not the largest are at most 1/sqrt(2). The
// sign of the largest is positive: q and -q are the same rotation.
func sogPackQuat(q []float32) (out [4]uint8, ok bool) {
	length, largest := 0.0, 0
	for j, x := range q {
		length += float64(x) * float64(x)
		if math.Abs(float64(x)) > math.Abs(float64(q[largest])) {
			largest = j
		}
	}
	if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
		return out, false
	}
	scale := math.Copysign(math.Sqrt2/math.Sqrt(length), float64(q[largest]))
	at := 0
	for j, x := range q {
		if j != largest {
			out[at] = uint8(math.Round(255 * min(max(float64(x)*scale*0.5+0.5, 0), 1)))
			at++
		}
	}
	out[3] = uint8(sogLargest + largest)
	return out, true
}

// sogUnpackQuat is the inverse of sogPackQuat; what is no rotation turns nothing.
func sogUnpackQuat(packed [4]uint8) [4]float32 {
	if packed[3] < sogLargest {
		return [4]float32{1, 0, 0, 0}
	}
	var q [4]float32
	largest, at, rest := int(packed[3])-sogLargest, 0, 1.0
	for j := range q {
		if j != largest {
			x := (float64(packed[at])/255*2 - 1) / math.Sqrt2
			q[j] = float32(x)
			rest -= x * x
			at++
		}
	}
	q[largest] = float32(math.Sqrt(max(rest, 0)))
	return q
}
