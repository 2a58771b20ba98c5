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
	for u.Kind++; u.Kind <= Reset; u.Kind++ {
		if c.Comes(u, carves) {
			return u
		}
	}
	u.Kind, u.Step = Step, u.Step+1
	return u
}

// reorderEvery is how many steps lie between two times that splats are put in order, about: it takes as long as one or
// two steps, and splats in order save a tenth of each.
const reorderEvery = 500

// Comes reports whether the schedule has u. A refinement may be one that only removes. Splats are put in order after
// the first step, since a capture's points come in no known order; now and then with a refinement, which adds and
// copies splats in no order; and with the last one. A run of a single step gains nothing by it.
func (c *Config) Comes(u Unit, carves bool) bool {
	step := u.Step
	switch refines := c.Refines(step); u.Kind {
	case Carve, Refine:
		return (carves || u.Kind == Refine) && (refines || c.Cleans(step))
	case Reorder:
		return step == 0 && c.Iterations > 1 ||
			refines && (step%reorderEvery < c.RefineEvery || step+c.RefineEvery >= c.RefineStop)
	case Reset:
		return c.RefineEvery > 0 && c.ResetEvery > 0 && step > 0 && step < c.RefineStop && step%c.ResetEvery == 0
	}
	return true
}
