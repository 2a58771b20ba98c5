package cli

import (
	"errors"
	"fmt"

	"vksplat/internal/fault"
)

// colour is an RGB colour from 0 to 1.
type colour [3]float32

func (f *colour) Type() string { return "COLOUR" }

func (f *colour) String() string {
	switch *f {
	case colour{}:
		return "black"
	case colour{1, 1, 1}:
		return "white"
	}
	return fmt.Sprintf("%g,%g,%g", f[0], f[1], f[2])
}

// Set parses black, white or R,G,B.
func (f *colour) Set(s string) error {
	switch s {
	case "black":
		*f = colour{}
		return nil
	case "white":
		*f = colour{1, 1, 1}
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
	*f = colour{float32(v[0]), float32(v[1]), float32(v[2])}
	return nil
}
