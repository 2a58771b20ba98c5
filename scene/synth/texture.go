package synth

import (
	"math"

	"vksplat/internal/geom"
)

func mix(a, b geom.Vec, t float64) geom.Vec { return a.Add(b.Sub(a).Mul(t)) }
func saturate(x float64) float64            { return min(max(x, 0), 1) }
func smooth(lo, hi, x float64) float64 {
	t := saturate((x - lo) / (hi - lo))
	return t * t * (3 - 2*t)
}

// rgb reads a colour written as 0xRRGGBB.
func rgb(hex uint32) geom.Vec {
	return geom.Vec{float64(hex >> 16 & 0xff), float64(hex >> 8 & 0xff), float64(hex & 0xff)}.Mul(1.0 / 255)
}

// lattice returns a value of 0..1 for a point of the integer grid, by a few
// rounds of multiply and xor-shift: textures need no better randomness.
func lattice(x, y, z int32) float64 {
	h := uint32(x)*0x8da6b343 ^ uint32(y)*0xd8163841 ^ uint32(z)*0xcb1ab31f
	h = (h ^ h>>15) * 0x2c1b3c6d
	h = (h ^ h>>12) * 0x297a2d39
	return float64(h^h>>15) / (1 << 32)
}

// noise is value noise of 0..1: lattice values, interpolated smoothly, one
// feature per unit of length.
func noise(p geom.Vec) float64 {
	var cell [3]int32
	var t [3]float64
	for i, x := range p {
		f := math.Floor(x)
		cell[i] = int32(f)
		u := x - f
		t[i] = u * u * (3 - 2*u)
	}
	var plane [2]float64
	for k := range plane {
		z := cell[2] + int32(k)
		a := lattice(cell[0], cell[1], z)
		b := lattice(cell[0]+1, cell[1], z)
		c := lattice(cell[0], cell[1]+1, z)
		d := lattice(cell[0]+1, cell[1]+1, z)
		a += (b - a) * t[0]
		c += (d - c) * t[0]
		plane[k] = a + (c-a)*t[1]
	}
	return plane[0] + (plane[1]-plane[0])*t[2]
}

// cloudy adds three octaves of noise, 0..1 around 0.5.
func cloudy(p geom.Vec) float64 {
	return (4*noise(p) + 2*noise(p.Mul(2.03)) + noise(p.Mul(4.1))) / 7
}

// wave is a square wave of period 2 with soft edges, -1..1; hardness 1 is a
// triangle.
func wave(x, hardness float64) float64 {
	x = x/2 - math.Floor(x/2)
	return min(max(hardness*(4*math.Abs(x-0.5)-1), -1), 1)
}

// texture gives the colour of a surface at a point in the object's own frame.
type texture func(p geom.Vec) geom.Vec

// checker alternates two colours over squares of the given side in x and y.
func checker(a, b geom.Vec, side float64) texture {
	return func(p geom.Vec) geom.Vec {
		t := wave(p[0]/side, 4) * wave(p[1]/side, 4)
		return mix(a, b, 0.5+0.5*t)
	}
}

// boxChecker is a checker in all three directions, so that it shows on every
// face of a box whose half sides are odd multiples of half a square.
func boxChecker(a, b geom.Vec, side float64) texture {
	return func(p geom.Vec) geom.Vec {
		t := wave(p[0]/side+0.5, 4) * wave(p[1]/side+0.5, 4) * wave(p[2]/side+0.5, 4)
		return mix(a, b, 0.5+0.5*t)
	}
}

// marble mixes two colours by cloudy noise of the given size.
func marble(a, b geom.Vec, size float64) texture {
	return func(p geom.Vec) geom.Vec { return mix(a, b, smooth(0.3, 0.7, cloudy(p.Mul(1/size)))) }
}

// bands are stripes across a direction, a little wavy.
func bands(a, b, direction geom.Vec, width float64) texture {
	return func(p geom.Vec) geom.Vec {
		x := p.Dot(direction)/width + 0.35*noise(p.Mul(2.5))
		return mix(a, b, 0.5+0.5*wave(x, 2.5))
	}
}

// segments are n pairs of stripes around the z axis, turned by twist radians
// per unit of height.
func segments(a, b geom.Vec, n int, twist float64) texture {
	return func(p geom.Vec) geom.Vec {
		angle := math.Atan2(p[1], p[0]) + twist*p[2]
		return mix(a, b, 0.5+0.5*wave(angle*float64(n)/math.Pi, 3))
	}
}

// floorTexture is a round pavement of warm tiles with a rim, and sand with
// large soft patches around it.
func floorTexture() texture {
	tiles := checker(rgb(0xe3cfae), rgb(0xb98e68), 0.55)
	sand := marble(rgb(0x8d9a5b), rgb(0xc2b377), 1.3)
	rim := rgb(0x6b5248)
	return func(p geom.Vec) geom.Vec {
		r := math.Sqrt(p[0]*p[0] + p[1]*p[1])
		shade := 0.92 + 0.16*noise(p.Mul(1.7))
		switch out := smooth(2.5, 2.56, r); out { // most of the time goes into noise: none is made that does not show
		case 0:
			return mix(tiles(p), rim, smooth(2.32, 2.38, r)).Mul(shade)
		case 1:
			return sand(p).Mul(shade)
		default:
			return mix(rim, sand(p), out).Mul(shade)
		}
	}
}

// skyTexture colours the dome by direction: two ranges of hills, haze at the
// horizon, a warm evening sky and a few large clouds.
func skyTexture() texture {
	top, low, cloud := rgb(0x3f78b5), rgb(0xf4cf9f), rgb(0xfdeedd)
	far, near := rgb(0x8799ad), rgb(0x5f7a66)
	const edge = 0.008
	// open is how much of the direction d is above a range of hills that is so low, and as high as rough more.
	open := func(d geom.Vec, low, rough, size float64, place geom.Vec) float64 {
		if d[2] > low+rough+edge {
			return 1
		}
		angle := geom.Vec{d[0], d[1], 0}.Unit()
		top := low + rough*noise(angle.Mul(size).Add(place))
		return smooth(top-edge, top+edge, d[2])
	}
	return func(p geom.Vec) geom.Vec {
		d := p.Unit()
		overNear := open(d, 0.03, 0.11, 3.1, geom.Vec{2, 4, 8})
		var sky, hill geom.Vec // none is made that does not show
		if overNear < 1 {
			hill = near.Mul(0.8 + 0.45*cloudy(d.Mul(7)))
		}
		if overNear == 0 {
			return hill
		}
		overFar := open(d, 0.10, 0.13, 2.4, geom.Vec{5, 9, 3})
		if overFar > 0 {
			sky = mix(low, top, smooth(-0.02, 0.55, d[2]))
			sky = mix(sky, cloud, 0.75*smooth(0.52, 0.72, cloudy(geom.Vec{d[0], d[1], 2.6 * d[2]}.Mul(2.2))))
		}
		if overFar < 1 {
			sky = mix(far.Mul(0.9+0.25*noise(d.Mul(9))), sky, overFar)
		}
		if overNear < 1 {
			sky = mix(hill, sky, overNear)
		}
		return sky
	}
}
