package edit

import (
	"errors"
	"slices"

	"github.com/kelindar/bitmap"

	"vksplat/internal/parallel"
	"vksplat/scene/splatfile"
)

// State is an edit of a model: its operations, those that were taken back, and what they leave. Every splat is removed
// by one operation at most, so that all steps together hold no more than the number of each.
type State struct {
	means   []float32 // [N*3] as the file has them
	removed bitmap.Bitmap
	gone    int // how many
	steps   []step
	done    int // of steps; those after it were taken back
}

// step is an operation with what it changed.
type step struct {
	op   Operation
	gone []uint32 // splats that it removed
}

// SplatBytes is what an editor keeps of a splat in RAM: where it is in the file and where it is drawn, its opacity as
// it was and as it is drawn, and its number where it is removed.
const SplatBytes = 12 + 12 + 4 + 4 + 4

// New begins an edit. means are those of the file, [N*3], and must not change.
func New(means []float32) *State {
	return &State{means: means, removed: make(bitmap.Bitmap, (len(means)/3+63)/64)}
}

// What Do refuses, beside operations that are none.
var (
	ErrNothing = errors.New("nothing left to remove there")
	ErrAll     = errors.New("no splats would be left")
	ErrSameUp  = errors.New("that direction is already up")
)

// Do carries out an operation and returns the splats that it removed, ascending. What was taken back is forgotten. An
// operation that would change nothing, or leave nothing, is an error and no step.
func (s *State) Do(op Operation) ([]uint32, error) {
	if err := op.check(s.N()); err != nil {
		return nil, err
	}
	up := s.Up()
	made := step{op: op}
	switch {
	case op.Up != nil:
		if up != nil && *up == *op.Up {
			return nil, ErrSameUp
		}
	case op.Crop != nil:
		c := newCut(op.Crop, upright(up))
		made.gone = s.pick(func(i int) bool { return c.removes(s.means[3*i : 3*i+3]) })
	default:
		for i := 0; i < len(op.Remove); i += 2 {
			for id := op.Remove[i]; id < op.Remove[i]+op.Remove[i+1]; id++ {
				if !s.removed.Contains(id) {
					made.gone = append(made.gone, id)
				}
			}
		}
	}
	switch {
	case op.Up == nil && len(made.gone) == 0:
		return nil, ErrNothing
	case s.gone+len(made.gone) == s.N():
		return nil, ErrAll
	}
	clear(s.steps[s.done:])
	s.steps = append(s.steps[:s.done], made)
	s.Redo()
	return made.gone, nil
}

// pickBlock is how many splats one unit of parallel work looks at.
const pickBlock = 1 << 14

// pick lists the splats that are not removed and are wanted.
func (s *State) pick(wanted func(i int) bool) []uint32 {
	n := s.N()
	lists := make([][]uint32, (n+pickBlock-1)/pickBlock)
	parallel.For(len(lists), func(k int) {
		for i := k * pickBlock; i < min((k+1)*pickBlock, n); i++ {
			if !s.removed.Contains(uint32(i)) && wanted(i) {
				lists[k] = append(lists[k], uint32(i))
			}
		}
	})
	return slices.Concat(lists...)
}

// Undo takes the last operation back and returns the splats that are there again; ok is false where there is none.
func (s *State) Undo() (back []uint32, ok bool) {
	if s.done == 0 {
		return nil, false
	}
	s.done--
	back = s.steps[s.done].gone
	for _, id := range back {
		s.removed.Remove(id)
	}
	s.gone -= len(back)
	return back, true
}

// Redo carries out again what was taken back last.
func (s *State) Redo() (gone []uint32, ok bool) {
	if s.done == len(s.steps) {
		return nil, false
	}
	gone = s.steps[s.done].gone
	for _, id := range gone {
		s.removed.Set(id)
	}
	s.gone += len(gone)
	s.done++
	return gone, true
}

// Resume carries out the operations of a document, which is of the same model.
func (s *State) Resume(d *Document) error {
	if own := s.Document(); d.Splats != own.Splats || d.Positions != own.Positions {
		return d.refuse("the edits belong to another model")
	}
	for i := range d.Operations {
		if _, err := s.Do(d.Operations[i]); err != nil && !errors.Is(err, ErrNothing) && !errors.Is(err, ErrSameUp) {
			return d.refuse("operation %d: %w", i+1, err)
		}
	}
	return nil
}

// N is how many splats the file has.
func (s *State) N() int { return len(s.means) / 3 }

// Kept is how many are left.
func (s *State) Kept() int { return s.N() - s.gone }

// Removed is a copy of the set of splats that are removed.
func (s *State) Removed() bitmap.Bitmap { return slices.Clone(s.removed) }

// Gone says whether a splat is removed.
func (s *State) Gone(i int) bool { return s.removed.Contains(uint32(i)) }

// Steps is how many operations are in force, and how many were taken back.
func (s *State) Steps() (done, undone int) { return s.done, len(s.steps) - s.done }

// Up is the up direction that was chosen, in the frame of the file; nil: none.
func (s *State) Up() *[3]float64 {
	for i := s.done - 1; i >= 0; i-- {
		if up := s.steps[i].op.Up; up != nil {
			return up
		}
	}
	return nil
}

// Upright rotates the model so that Up is -y, which viewers take for up.
func (s *State) Upright() splatfile.Similarity { return upright(s.Up()) }

// Operations are those in force.
func (s *State) Operations() []Operation {
	list := make([]Operation, s.done)
	for i := range list {
		list[i] = s.steps[i].op
	}
	return list
}

// Bounds are quantiles of the centres that are left and wanted, in the frame after Up: the least x, y, z and then the
// greatest, but for a part of the splats at each end of each axis. ok is false where that is less than a twentieth of
// what is left. They are those of some of the splats, evenly over the model.
func (s *State) Bounds(part float64, wanted func(i int) bool) (box [6]float64, ok bool) {
	const most = 200_000
	up := s.Upright()
	var at [3][]float64
	left := 0
	for i := 0; i < s.N(); i += 1 + (s.N()-1)/most {
		if s.removed.Contains(uint32(i)) {
			continue
		}
		if left++; !wanted(i) {
			continue
		}
		p := turned(&up.R, [3]float64{float64(s.means[3*i]), float64(s.means[3*i+1]), float64(s.means[3*i+2])})
		for k := range at {
			at[k] = append(at[k], p[k])
		}
	}
	if len(at[0]) == 0 || 20*len(at[0]) < left {
		return box, false
	}
	for k, list := range at {
		slices.Sort(list)
		skip := int(part * float64(len(list)-1))
		box[k], box[3+k] = list[skip], list[len(list)-1-skip]
	}
	return box, true
}
