package splatfile

import (
	"math"

	"vksplat/scene"
)

func (s *sogSource) unpack(first int, into *scene.Splats) error {
	if err := s.load(); err != nil {
		return s.fail(err)
	}
	for i := range into.N {
		s.data.splat(into, i, first+i)
	}
	return nil
}

func (d *sogData) splat(into *scene.Splats, i, id int) {
	for axis := range 3 {
		v := int(d.low[3*id+axis]) | int(d.high[3*id+axis])<<8
		into.Means[3*i+axis] = float32(sogUnlog(d.start[axis] + d.perStep[axis]*(float64(v)/65535)))
		into.LogScales[3*i+axis] = d.scaleTable[axis].value[d.scales[3*id+axis]]
	}
	quat := sogUnpackQuat([4]uint8(d.quats[4*id:]))
	setQuat(into.Quats[4*i:], quat[0], quat[1], quat[2], quat[3])
	into.LogitOpacities[i] = d.colour[3].value[d.sh0[4*id+3]]
	width := 3 * into.K()
	sh := into.SH[width*i : width*(i+1)]
	for c := range 3 {
		sh[c] = d.colour[c].value[d.sh0[4*id+c]]
	}
	if d.labels == nil {
		return
	}
	// The palette has a coefficient's three channels in a pixel: the order of scene.Splats. What is beyond it is no
	// colour at all.
	at := (width - 3) * (int(d.labels[2*id]) | int(d.labels[2*id+1])<<8)
	if at+width-3 > len(d.palette) {
		clear(sh[3:])
		return
	}
	copy(sh[3:], d.palette[at:])
}

// sogLog is the scale on which means are quantised: near the origin of the capture finer than far away.
func sogLog(x float64) float64 { return math.Copysign(math.Log1p(math.Abs(x)), x) }

func sogUnlog(x float64) float64 { return math.Copysign(math.Expm1(math.Abs(x)), x) }

// sogLargest is what the alpha of an image of rotations counts from: the number of the largest component, which is left
// out.
const sogLargest = 252

// sogPackQuat stores three components of a rotation of length 1 in 8 bits each.
func sogPackQuat(q [4]float64) (out [4]uint8) {
	largest, others := threeOf(q)
	for i, x := range others {
		out[i] = uint8(unit(x*math.Sqrt2*0.5+0.5, 255))
	}
	out[3] = uint8(sogLargest + largest)
	return out
}

// sogUnpackQuat is the inverse of sogPackQuat; what is no rotation turns nothing.
func sogUnpackQuat(packed [4]uint8) [4]float64 {
	if packed[3] < sogLargest {
		return [4]float64{1, 0, 0, 0}
	}
	var others [3]float64
	for i := range others {
		others[i] = (float64(packed[i])/255*2 - 1) / math.Sqrt2
	}
	return fourOf(int(packed[3])-sogLargest, others)
}
