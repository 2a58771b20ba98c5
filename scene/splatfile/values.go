package splatfile

import (
	"encoding/binary"
	"math"

	"vksplat/scene"
	"vksplat/scene/ply"
)

// What formats store in the place of a model's raw values: bytes, halves, lengths, opacities. What is infinite as a
// logit or a logarithm becomes +-ply.InfiniteLog, as where a PLY file is read.

// sigmoid gives the opacity of a logit, 0 to 1.
func sigmoid(logit float32) float64 { return 1 / (1 + math.Exp(-float64(logit))) }

func logit(opacity float64) float32 {
	return float32(min(max(math.Log(opacity/(1-opacity)), -ply.InfiniteLog), ply.InfiniteLog))
}

// opacityByte gives the opacity of a logit in parts of 255.
func opacityByte(logit float32) uint8 { return uint8(unit(sigmoid(logit), 255)) }

var byteLogits = func() (out [256]float32) {
	for b := range out {
		out[b] = logit(float64(b) / 255)
	}
	return out
}()

// colorOf gives a colour, mostly from 0 to 1, of coefficient 0 of the spherical harmonics.
func colorOf(sh float32) float64 { return float64(float64(sh)*scene.SH0) + 0.5 }

// byteColors are coefficients 0 of the spherical harmonics of colours of 0 to 255 parts in 255.
var byteColors = func() (out [256]float32) {
	for b := range out {
		out[b] = float32((float64(b)/255 - 0.5) / scene.SH0)
	}
	return out
}()

// restNumbers is the number of coefficients of a degree beyond the first, all channels together.
func restNumbers(degree int) int { return 3 * (scene.SHCoefficients(degree) - 1) }

// unit rounds x times top to a whole number from 0 to top.
func unit(x float64, top uint32) uint32 { return whole(float64(x*float64(top)), top) }

// whole rounds to a whole number from 0 to top.
func whole(x float64, top uint32) uint32 {
	return uint32(min(max(math.Floor(x+0.5), 0), float64(top)))
}

// byteOf rounds to a byte, and tells whether it had to cut by more than rounding does.
func byteOf(x float64) (b uint8, cut bool) { return uint8(whole(x, 255)), x < -0.5 || x >= 255.5 }

// lengthLog is the logarithm of a length; what is no length is as short as can be.
func lengthLog(length float64) float32 {
	if length <= 0 {
		return -ply.InfiniteLog
	}
	return float32(math.Log(length))
}

// floatAt is number i of a row of float32.
func floatAt(row []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:]))
}

func appendFloats(to []byte, values ...float32) []byte {
	for _, x := range values {
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(x))
	}
	return to
}

func isFinite(x float32) bool { return x-x == 0 }
