package splatfile

import (
	"encoding/binary"
	"math"

	"vksplat/scene"
	"vksplat/shaders/layout"
)

// The quantisation of SPZ, as the reference implementation has it.
const (
	spzColorScale = 0.15 // colour byte = 255 * (scale * coefficient + 1/2)
	spzScaleSteps = 16   // steps a unit of the logarithm of a scale, from -10 on
	spzScaleStart = -10
	spzQuatSteps  = 511 // of a component up to 1/sqrt(2)
)

// spzBuckets are the steps between SH bytes that writers use, for degree 1 and for the others: 5 and 4 bits of 8 carry
// something.
var spzBuckets = [2]int{1 << 3, 1 << 4}

// spzCut counts the splats of which SPZ had to cut something.
type spzCut struct{ scales, colors, sh int }

// packSPZ writes the planes of a piece whose rotations are normalised and whose axes are the file's.
func packSPZ(bits int, piece *scene.Splats, packed [][]byte, cut *spzCut) {
	k := piece.K()
	for i := range piece.N {
		for _, x := range piece.Means[3*i : 3*i+3] {
			fixed := int32(math.Round(math.Ldexp(float64(x), bits)))
			packed[spzPositions] = append(packed[spzPositions], byte(fixed), byte(fixed>>8), byte(fixed>>16))
		}
		packed[spzAlphas] = append(packed[spzAlphas], opacityByte(piece.LogitOpacities[i]))
		cutScale, cutColor, cutSH := false, false, false
		for _, x := range piece.LogScales[3*i : 3*i+3] {
			b, c := byteOf((float64(x) - spzScaleStart) * spzScaleSteps)
			packed[spzScales] = append(packed[spzScales], b)
			cutScale = cutScale || c
		}
		packed[spzRotations] = binary.LittleEndian.AppendUint32(packed[spzRotations],
			packQuatSPZ(doubles(piece.Quats[4*i:4*i+4])))
		sh := piece.SH[3*k*i : 3*k*(i+1)]
		for _, x := range sh[:3] {
			b, c := byteOf(255 * (spzColorScale*float64(x) + 0.5))
			packed[spzColors] = append(packed[spzColors], b)
			cutColor = cutColor || c
		}
		for j, x := range sh[3:] {
			b, c := packSH(float64(x), spzBuckets[min(j/9, 1)])
			packed[spzSH] = append(packed[spzSH], b)
			cutSH = cutSH || c
		}
		for _, c := range []struct {
			cut   bool
			count *int
		}{{cutScale, &cut.scales}, {cutColor, &cut.colors}, {cutSH, &cut.sh}} {
			if c.cut {
				*c.count++
			}
		}
	}
}

// packSH rounds a coefficient to the middle of its bucket; 0 is one. The reference implementation rounds to 1/128
// first, which can be worse by 1/256.
func packSH(x float64, bucket int) (b byte, cut bool) {
	step := float64(bucket) / 128
	q := 128 + bucket*int(math.Round(min(max(x, -2), 2)/step))
	return byte(min(max(q, 0), 255)), x < -1-step/2 || x > 1+step/2
}

// packQuatSPZ packs a rotation of length 1: in the order x y z w the three smallest components, 10 bits each (sign, 9
// bits of length), above them the number of the largest.
func packQuatSPZ(q [4]float64) uint32 {
	largest, others := threeOf([4]float64{q[1], q[2], q[3], q[0]})
	word := uint32(largest)
	for _, x := range others {
		sign := uint32(0)
		if x < 0 {
			sign = 1
		}
		word = word<<10 | sign<<9 | unit(math.Abs(x)*math.Sqrt2, spzQuatSteps)
	}
	return word
}

// unpackSPZ reads the planes of a piece, in the axes of the file.
func unpackSPZ(h spzHeader, packed [spzPlanes][]byte, piece *scene.Splats) {
	k, stored := piece.K(), restNumbers(h.degree)
	for i := range piece.N {
		for axis := range 3 {
			piece.Means[3*i+axis] = h.position(packed[spzPositions], 3*i+axis)
			piece.LogScales[3*i+axis] = float32(packed[spzScales][3*i+axis])/spzScaleSteps + spzScaleStart
			piece.SH[3*k*i+axis] = float32((float64(packed[spzColors][3*i+axis])/255 - 0.5) / spzColorScale)
		}
		// 0 and 255 stand for a range of opacities that ends at 0 and 1, where the logit is infinite: its middle.
		alpha := min(max(float64(packed[spzAlphas][i]), 0.25), 254.75)
		piece.LogitOpacities[i] = logit(alpha / 255)
		var q [4]float64 // x y z w
		if h.version < 3 {
			q = unpackQuatFirst(packed[spzRotations][3*i:])
		} else {
			q = unpackQuatSPZ(binary.LittleEndian.Uint32(packed[spzRotations][4*i:]))
		}
		setQuat(piece.Quats[4*i:], q[3], q[0], q[1], q[2])
		for j := range 3 * (k - 1) {
			piece.SH[3*k*i+3+j] = (float32(packed[spzSH][stored*i+j]) - 128) / 128
		}
	}
}

// position reads coordinate i: a half in version 1, then 24 bits of fixed point.
func (h spzHeader) position(b []byte, i int) float32 {
	if h.version == 1 {
		return layout.HalfValue(binary.LittleEndian.Uint16(b[2*i:]))
	}
	b = b[3*i : 3*i+3]
	fixed := int32(b[0])<<8 | int32(b[1])<<16 | int32(b[2])<<24
	return float32(math.Ldexp(float64(fixed>>8), -h.bits))
}

func unpackQuatSPZ(word uint32) [4]float64 {
	var others [3]float64
	for i := range others {
		part := word >> (20 - 10*i)
		others[i] = float64(part&spzQuatSteps) / spzQuatSteps / math.Sqrt2
		if part&(1<<9) != 0 {
			others[i] = -others[i]
		}
	}
	return fourOf(int(word>>30), others)
}

// unpackQuatFirst reads x, y and z of versions 1 and 2; w is positive.
func unpackQuatFirst(b []byte) [4]float64 {
	var others [3]float64
	for i := range others {
		others[i] = float64(b[i])/127.5 - 1
	}
	return fourOf(3, others)
}
