package splatfile

import (
	"fmt"
	"math"
	"path/filepath"

	"vksplat/scene"
)

// The values of formats that keep bytes or lengths where a model has logits and logarithms. What is infinite there becomes +-scene.InfiniteLog, as where a
// PLY file is read.

// byteLogits are the logits of opacities of 0 to 255 parts in 255.
var byteLogits = func() (out [256]float32) {
	for b := range out {
		out[b] = float32(math.Log(float64(b) / float64(255-b)))
	}
	out[0], out[255] = -scene.InfiniteLog, scene.InfiniteLog
	return out
}()

// opacityByte gives the opacity of a logit in parts of 255.
func opacityByte(logit float32) uint8 { return uint8(unit(1/(1+math.Exp(-float64(logit))), 255)) }

// byteColors are coefficients 0 of the spherical harmonics of colours of 0 to 255 parts in 255.
var byteColors = func() (out [256]float32) {
	for b := range out {
		out[b] = float32((float64(b)/255 - 0.5) / scene.SH0)
	}
	return out
}()

// unit rounds x times top to a whole number from 0 to top.
func unit(x float64, top uint32) uint32 { return whole(float64(x*float64(top)), top) }

// whole rounds to a whole number from 0 to top.
func whole(x float64, top uint32) uint32 {
	return uint32(min(max(math.Floor(x+0.5), 0), float64(top)))
}

// lengthLog is the logarithm of a length; what is no length is as short as can be.
func lengthLog(length float64) float32 {
	if length <= 0 {
		return -scene.InfiniteLog
	}
	return float32(math.Log(length))
}

// halfFloat gives the value of an IEEE 754 number of 16 bits.
func halfFloat(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)
	value := math.Ldexp(1024+fraction, exponent-25)
	switch {
	case exponent == 0:
		value = math.Ldexp(fraction, -24)
	case exponent == 31 && fraction == 0:
		value = math.Inf(1)
	case exponent == 31:
		value = math.NaN()
	}
	if h>>15 == 1 {
		return -value
	}
	return value
}

// setQuat stores a rotation; what has no direction is none.
func setQuat(to []float32, w, x, y, z float64) {
	to[0], to[1], to[2], to[3] = float32(w), float32(x), float32(y), float32(z)
	if to[0] == 0 && to[1] == 0 && to[2] == 0 && to[3] == 0 {
		to[0] = 1
	}
}

// unitQuat gives a rotation at length 1.
func unitQuat(q []float32) (out [4]float64) {
	length := math.Hypot(math.Hypot(float64(q[0]), float64(q[1])), math.Hypot(float64(q[2]), float64(q[3])))
	for i, x := range q {
		out[i] = float64(x) / length
	}
	return out
}

// checkSplats says which splat cannot be written, by its number in the model.
func checkSplats(s *scene.Splats, ids []uint32) error {
	for _, t := range []struct {
		name   string
		values []float32
	}{{"position", s.Means}, {"rotation", s.Quats}, {"scale", s.LogScales}, {"opacity", s.LogitOpacities}, {"sh", s.SH}} {
		for j, x := range t.values {
			if x-x != 0 {
				return fmt.Errorf("splatfile: write model: splat %d: %s is %v: not a finite number", ids[j*s.N/len(t.values)], t.name, x)
			}
		}
	}
	for i, id := range ids {
		if [4]float32(s.Quats[4*i:]) == [4]float32{} {
			return fmt.Errorf("splatfile: write model: splat %d: its rotation has length zero", id)
		}
	}
	return nil
}

// tempDir is the folder for what does not fit memory while path is written.
func (o WriteOptions) tempDir(path string) string {
	if o.TempDir != "" {
		return o.TempDir
	}
	return filepath.Dir(path)
}
