package recipe

import (
	"fmt"
	"slices"
)

// Kind is a sort of work. A unit is done whole or not at all.
type Kind int

const (
	Step    Kind = iota // a training step
	Carve               // floaters become invisible, for the refinement that follows to remove
	Refine              // densification and pruning
	Reorder             // splats move in memory next to their neighbours in space
	Reset               // opacity reset
	Render              // a picture
	Align               // a camera alone is moved to where its photo fits the model better
	NKinds
)

var kindNames = [NKinds]string{"step", "carve", "refine", "reorder", "reset", "render", "align"}

func (k Kind) String() string { return kindNames[k] }

// MarshalText is for JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is for JSON.
func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("no unit is called %q", text)
	}
	*k = Kind(i)
	return nil
}

// Unit is one piece of work in the queue.
type Unit struct {
	Kind   Kind   `json:"kind"`
	Number uint32 `json:"number"`
	Step   int    `json:"step"` // counted from 0
}

// StepsBefore returns the steps that are done when u comes next.
func (u Unit) StepsBefore() int {
	if u.Kind == Step {
		return u.Step
	}
	return u.Step + 1
}

// After returns the unit that follows u. carves says that floaters are carved before refinements.
func (c *Config) After(u Unit, carves bool) Unit {
	u.Number++
	switch {
	case u.Kind == Step && carves && c.refinesOrCleans(u.Step):
		u.Kind = Carve
	case (u.Kind == Step || u.Kind == Carve) && c.refinesOrCleans(u.Step):
		u.Kind = Refine
	case u.Kind != Reorder && u.Kind != Reset && c.reorders(u.Step):
		u.Kind = Reorder
	case u.Kind != Reset && c.resets(u.Step):
		u.Kind = Reset
	default:
		u.Kind, u.Step = Step, u.Step+1
	}
	return u
}

// Comes reports whether the schedule has u.
func (c *Config) Comes(u Unit, carves bool) bool {
	switch u.Kind {
	case Carve:
		return carves && c.refinesOrCleans(u.Step)
	case Refine:
		return c.refinesOrCleans(u.Step)
	case Reorder:
		return c.reorders(u.Step)
	case Reset:
		return c.resets(u.Step)
	}
	return true
}

// refinesOrCleans reports whether a refinement follows a step, if only one that removes.
func (c *Config) refinesOrCleans(step int) bool { return c.Refines(step) || c.Cleans(step) }
