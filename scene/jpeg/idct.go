package jpeg

import "encoding/binary"

// zigzag gives the place in a block, row by row, of the coefficient that a JPEG stores as the k-th.
var zigzag = [64]uint8{
	0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5,
	12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28,
	35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
	58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
}

// lastOfCorner is the last coefficient, in stored order, of those whose row and column sum to at most 3.
const lastOfCorner = 9

// The inverse transform is the accurate integer one of libjpeg ("islow"): two passes of the eight-point transform of
// Loeffler, Ligtenberg and Moschytz in 13 bits of fraction, the columns' results kept with 2 bits of fraction. Products
// are summed without rounding, so any order of the sums gives libjpeg's samples, and terms that are zero may be left
// out; the constants, rounded once each, are what makes the results equal.
const (
	idctBits  = 13 // fraction of the constants
	passBits  = 2  // fraction between the passes
	columnOut = idctBits - passBits
	rowOut    = idctBits + passBits + 3 // the transform is 8 times too large

	columnHalf = 1 << (columnOut - 1)
	rowHalf    = 1<<(rowOut-1) + 128<<rowOut // with the shift of samples to 0..255
)

// Constants of the transform, times 2^13.
const (
	c0298 = 2446
	c0390 = 3196
	c0541 = 4433
	c0765 = 6270
	c0899 = 7373
	c1175 = 9633
	c1501 = 12299
	c1847 = 15137
	c1961 = 16069
	c2053 = 16819
	c2562 = 20995
	c3072 = 25172
)

// idct writes the 8 x 8 samples of a block of dequantised coefficients, given row by row, of which those stored after
// the last-th are zero.
func idct(dst []uint8, stride int, b *[64]int16, last int) {
	switch {
	case last == 0:
		idctFlat(dst, stride, b[0])
	case last <= lastOfCorner:
		idctCorner(dst, stride, b)
	default:
		idctFull(dst, stride, b)
	}
}

// idctFlat is idct of a block that has only its mean.
func idctFlat(dst []uint8, stride int, mean int16) {
	v := uint64(Clamp8((int32(mean)<<passBits+1<<(passBits+2))>>(passBits+3)+128)) * 0x0101010101010101
	for y := range 8 {
		binary.LittleEndian.PutUint64(dst[y*stride:], v)
	}
}

// idctCorner is idct of a block whose coefficients beyond the corner of 4 x 4 are zero.
func idctCorner(dst []uint8, stride int, b *[64]int16) {
	var t [32]int32 // rows of 4
	for x := range 4 {
		even0, even2 := int32(b[x])<<idctBits+columnHalf, int32(b[x+16])
		odd1, odd3 := int32(b[x+8]), int32(b[x+24])
		e0, e3 := even0+even2*(c0541+c0765), even0-even2*(c0541+c0765)
		e1, e2 := even0+even2*c0541, even0-even2*c0541
		o0 := odd1*(c1501-c0899-c0390+c1175) + odd3*c1175
		o1 := odd1*c1175 + odd3*(c3072-c2562-c1961+c1175)
		o2 := odd1*(c1175-c0390) + odd3*(c1175-c2562)
		o3 := odd1*(c1175-c0899) + odd3*(c1175-c1961)
		t[x], t[x+28] = (e0+o0)>>columnOut, (e0-o0)>>columnOut
		t[x+4], t[x+24] = (e1+o1)>>columnOut, (e1-o1)>>columnOut
		t[x+8], t[x+20] = (e2+o2)>>columnOut, (e2-o2)>>columnOut
		t[x+12], t[x+16] = (e3+o3)>>columnOut, (e3-o3)>>columnOut
	}
	for y := range 8 {
		r := t[4*y : 4*y+4 : 4*y+4]
		even0, even2 := r[0]<<idctBits+rowHalf, r[2]
		odd1, odd3 := r[1], r[3]
		e0, e3 := even0+even2*(c0541+c0765), even0-even2*(c0541+c0765)
		e1, e2 := even0+even2*c0541, even0-even2*c0541
		o0 := odd1*(c1501-c0899-c0390+c1175) + odd3*c1175
		o1 := odd1*c1175 + odd3*(c3072-c2562-c1961+c1175)
		o2 := odd1*(c1175-c0390) + odd3*(c1175-c2562)
		o3 := odd1*(c1175-c0899) + odd3*(c1175-c1961)
		storeRow(dst[y*stride:], (e0+o0)>>rowOut, (e1+o1)>>rowOut, (e2+o2)>>rowOut, (e3+o3)>>rowOut,
			(e3-o3)>>rowOut, (e2-o2)>>rowOut, (e1-o1)>>rowOut, (e0-o0)>>rowOut)
	}
}

func idctFull(dst []uint8, stride int, b *[64]int16) {
	var t [64]int32
	for x := range 8 {
		if b[x+8]|b[x+16]|b[x+24]|b[x+32]|b[x+40]|b[x+48]|b[x+56] == 0 {
			v := int32(b[x]) << passBits
			t[x], t[x+8], t[x+16], t[x+24], t[x+32], t[x+40], t[x+48], t[x+56] = v, v, v, v, v, v, v, v
			continue
		}
		even2, even6 := int32(b[x+16]), int32(b[x+48])
		sum, difference := (int32(b[x])+int32(b[x+32]))<<idctBits+columnHalf,
			(int32(b[x])-int32(b[x+32]))<<idctBits+columnHalf
		mid := (even2 + even6) * c0541
		high, low := mid+even2*c0765, mid-even6*c1847
		e0, e1, e2, e3 := sum+high, difference+low, difference-low, sum-high
		o0, o1, o2, o3 := idctOdd(int32(b[x+8]), int32(b[x+24]), int32(b[x+40]), int32(b[x+56]))
		t[x], t[x+56] = (e0+o0)>>columnOut, (e0-o0)>>columnOut
		t[x+8], t[x+48] = (e1+o1)>>columnOut, (e1-o1)>>columnOut
		t[x+16], t[x+40] = (e2+o2)>>columnOut, (e2-o2)>>columnOut
		t[x+24], t[x+32] = (e3+o3)>>columnOut, (e3-o3)>>columnOut
	}
	for y := range 8 {
		r := t[8*y : 8*y+8 : 8*y+8]
		even2, even6 := r[2], r[6]
		sum, difference := (r[0]+r[4])<<idctBits+rowHalf, (r[0]-r[4])<<idctBits+rowHalf
		mid := (even2 + even6) * c0541
		high, low := mid+even2*c0765, mid-even6*c1847
		e0, e1, e2, e3 := sum+high, difference+low, difference-low, sum-high
		o0, o1, o2, o3 := idctOdd(r[1], r[3], r[5], r[7])
		storeRow(dst[y*stride:], (e0+o0)>>rowOut, (e1+o1)>>rowOut, (e2+o2)>>rowOut, (e3+o3)>>rowOut,
			(e3-o3)>>rowOut, (e2-o2)>>rowOut, (e1-o1)>>rowOut, (e0-o0)>>rowOut)
	}
}

// idctOdd gives what the odd coefficients add to the first four outputs and take from the last four.
func idctOdd(a1, a3, a5, a7 int32) (o0, o1, o2, o3 int32) {
	turn := (a1 + a3 + a5 + a7) * c1175
	s17, s35 := (a1+a7)*c0899, (a3+a5)*c2562
	s37, s15 := turn-(a3+a7)*c1961, turn-(a1+a5)*c0390
	return a1*c1501 - s17 + s15, a3*c3072 - s35 + s37, a5*c2053 - s35 + s15, a7*c0298 - s17 + s37
}

// storeRow writes eight samples, each brought into 0..255.
func storeRow(dst []uint8, v0, v1, v2, v3, v4, v5, v6, v7 int32) {
	if uint32(v0|v1|v2|v3|v4|v5|v6|v7) > 255 {
		v0, v1, v2, v3 = int32(Clamp8(v0)), int32(Clamp8(v1)), int32(Clamp8(v2)), int32(Clamp8(v3))
		v4, v5, v6, v7 = int32(Clamp8(v4)), int32(Clamp8(v5)), int32(Clamp8(v6)), int32(Clamp8(v7))
	}
	low := uint32(v0) | uint32(v1)<<8 | uint32(v2)<<16 | uint32(v3)<<24
	high := uint32(v4) | uint32(v5)<<8 | uint32(v6)<<16 | uint32(v7)<<24
	binary.LittleEndian.PutUint64(dst, uint64(low)|uint64(high)<<32)
}
