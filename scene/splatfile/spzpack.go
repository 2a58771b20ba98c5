package splatfile

import (
	"encoding/binary"
	"math"

	"vksplat/scene"
)

// The quantisation of SPZ, as the reference implementation has it.
const (
	spzColorScale = 0.15 // colour byte = 255 * (scale * coefficient + 1/2)
	spzScaleSteps = 16   // steps a unit of the logarithm of a scale, from -10 on
	spzScaleStart = -10
	spzQuatSteps  = 511 // of a component up to 1/sqrt(2)
)

// spzBuckets are the steps between SH bytes that writers use, for degree 1 and for the others: 5 and 4 bits of 8 carry something.
var spzBuckets = [2]int{1 << 3, 1 << 4}

// spzCut counts the splats of which SPZ had to cut something.
type spzCut struct{ scales, colors, sh int }

// byteOf rounds and cuts to a byte, and tells whether it had to cut by more than rounding does.
func byteOf(x float64) (b byte, cut bool) {
	r := math.Round(x)
	if r < 0 || r > 255 {
		return byte(min(max(r, 0), 255)), true
	}
	return byte(r), false
}

// packSPZ writes the planes of a piece whose rotations are normalised and whose axes are the file's.
func packSPZ(bits int, piece *scene.Splats, packed *[spzPlanes][]byte, cut *spzCut) {
	for plane := range packed {
		packed[plane] = packed[plane][:0]
	}
	k := piece.K()
	for i := range piece.N {
		for _, x := range piece.Means[3*i : 3*i+3] {
			fixed := int32(math.Round(math.Ldexp(float64(x), bits)))
			packed[spzPositions] = append(packed[spzPositions], byte(fixed), byte(fixed>>8), byte(fixed>>16))
		}
		alpha, _ := byteOf(255 * sigmoid(float64(piece.LogitOpacities[i])))
		packed[spzAlphas] = append(packed[spzAlphas], alpha)
		cutScale, cutColor, cutSH := false, false, false
		for _, x := range piece.LogScales[3*i : 3*i+3] {
			b, c := byteOf((float64(x) - spzScaleStart) * spzScaleSteps)
			packed[spzScales] = append(packed[spzScales], b)
			cutScale = cutScale || c
		}
		packed[spzRotations] = packQuatSPZ(packed[spzRotations], piece.Quats[4*i:4*i+4])
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

// packSH rounds a coefficient to the middle of its bucket; 0 is one. The reference implementation rounds to 1/128 first, which can be worse by 1/256.
func packSH(x float64, bucket int) (b byte, cut bool) {
	step := float64(bucket) / 128
	q := 128 + bucket*int(math.Round(min(max(x, -2), 2)/step))
	return byte(min(max(q, 0), 255)), x < -1-step/2 || x > 1+step/2
}

// packQuatSPZ appends the three smallest components of a unit quaternion w x y z in the order x y z w, 10 bits each (sign, 9 bits of length), above them
// the number of the largest, which is made positive.
func packQuatSPZ(to []byte, wxyz []float32) []byte {
	q := [4]float64{float64(wxyz[1]), float64(wxyz[2]), float64(wxyz[3]), float64(wxyz[0])}
	largest := 0
	for i, x := range q {
		if math.Abs(x) > math.Abs(q[largest]) {
			largest = i
		}
	}
	word := uint32(largest)
	for i, x := range q {
		if i == largest {
			continue
		}
		length := min(uint32(spzQuatSteps*math.Abs(x)*math.Sqrt2+0.5), spzQuatSteps)
		sign := uint32(0)
		if (x < 0) != (q[largest] < 0) {
			sign = 1
		}
		word = word<<10 | sign<<9 | length
	}
	return binary.LittleEndian.AppendUint32(to, word)
}

// unpackSPZ reads the planes of a piece, in the axes of the file.
func unpackSPZ(h spzHeader, packed [spzPlanes][]byte, piece *scene.Splats) {
	k, stored := piece.K(), 3*(scene.SHCoefficients(h.degree)-1)
	for i := range piece.N {
		for axis := range 3 {
			piece.Means[3*i+axis] = h.position(packed[spzPositions], 3*i+axis)
			piece.LogScales[3*i+axis] = float32(packed[spzScales][3*i+axis])/spzScaleSteps + spzScaleStart
			piece.SH[3*k*i+axis] = float32((float64(packed[spzColors][3*i+axis])/255 - 0.5) / spzColorScale)
		}
		// 0 and 255 stand for a range of opacities that ends at 0 and 1, where the logit is infinite: its middle.
		alpha := min(max(float64(packed[spzAlphas][i]), 0.25), 254.75)
		piece.LogitOpacities[i] = float32(logit(alpha / 255))
		if h.version < 3 {
			unpackQuatFirst(packed[spzRotations][3*i:], piece.Quats[4*i:4*i+4])
		} else {
			unpackQuatSPZ(binary.LittleEndian.Uint32(packed[spzRotations][4*i:]), piece.Quats[4*i:4*i+4])
		}
		for j := range 3 * (k - 1) {
			piece.SH[3*k*i+3+j] = (float32(packed[spzSH][stored*i+j]) - 128) / 128
		}
	}
}

// position reads coordinate i: a half in version 1, then 24 bits of fixed point.
func (h spzHeader) position(b []byte, i int) float32 {
	if h.version == 1 {
		return float32(halfFloat(binary.LittleEndian.Uint16(b[2*i:])))
	}
	b = b[3*i : 3*i+3]
	fixed := int32(b[0])<<8 | int32(b[1])<<16 | int32(b[2])<<24
	return float32(math.Ldexp(float64(fixed>>8), -h.bits))
}

func unpackQuatSPZ(word uint32, wxyz []float32) {
	var q [4]float64
	largest := int(word >> 30)
	rest := 1.0
	for i := 3; i >= 0; i-- {
		if i == largest {
			continue
		}
		q[i] = float64(word&spzQuatSteps) / spzQuatSteps / math.Sqrt2
		if word&(1<<9) != 0 {
			q[i] = -q[i]
		}
		rest -= q[i] * q[i]
		word >>= 10
	}
	q[largest] = math.Sqrt(max(rest, 0))
	setUnit(q, wxyz)
}

// unpackQuatFirst reads x, y and z of versions 1 and 2; w is positive.
func unpackQuatFirst(b []byte, wxyz []float32) {
	var q [4]float64
	rest := 1.0
	for i := range 3 {
		q[i] = float64(b[i])/127.5 - 1
		rest -= q[i] * q[i]
	}
	q[3] = math.Sqrt(max(rest, 0))
	setUnit(q, wxyz)
}

// setUnit stores a rotation x y z w of length one as w x y z. Rounded components can be longer than one together; they are never all zero.
func setUnit(q [4]float64, wxyz []float32) {
	length := math.Sqrt(q[0]*q[0] + q[1]*q[1] + q[2]*q[2] + q[3]*q[3])
	wxyz[0], wxyz[1], wxyz[2], wxyz[3] = float32(q[3]/length), float32(q[0]/length), float32(q[1]/length), float32(q[2]/length)
}
