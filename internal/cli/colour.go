package cli

import (
	"errors"
	"fmt"

	"vksplat/internal/fault"
)

// Colour is an RGB colour from 0 to 1.
type Colour [3]float32

func (f *Colour) Type() string { return "COLOUR" }

func (f *Colour) String() string {
	switch *f {
	case Colour{}:
		return "black"
	case Colour{1, 1, 1}:
		return "white"
	}
	return fmt.Sprintf("%g,%g,%g", f[0], f[1], f[2])
}

// Set parses black, white or R,G,B.
func (f *Colour) Set(s string) error {
	switch s {
	case "black":
		*f = Colour{}
		return nil
	case "white":
		*f = Colour{1, 1, 1}
		return nil
	}
	v, err := ThreeNumbers(s)
	for _, x := range v {
		if !(x >= 0 && x <= 1) {
			err = errors.New("out of range")
		}
	}
	if err != nil {
		return fault.Usagef("give black, white or three numbers from 0 to 1, as in 0.5,0.5,0.5",
			"%q is not a colour", s)
	}
	*f = Colour{float32(v[0]), float32(v[1]), float32(v[2])}
	return nil
}
