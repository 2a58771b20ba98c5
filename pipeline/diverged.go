package pipeline

import (
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/scene"
)

// strayShare is the part of the splats, one in so many, that may be no finite numbers while a refinement is to come: it
// removes or relocates them.
const strayShare = 100

// strays returns how many such splats a checkpoint may hold now.
func (t *Trainer) strays() int {
	step := t.next.Step
	if t.next.Kind == recipe.Reset {
		step++ // its refinement is done
	}
	if !t.cfg.RefinesFrom(step) {
		return 0
	}
	return t.progress.Splats / strayShare
}

// finitePieces refuses pieces of a model that hold NaN or infinite numbers.
func finitePieces(each func(piece *scene.Splats) error) func(piece *scene.Splats) error {
	return func(piece *scene.Splats) error {
		if err := piece.Validate(); err != nil {
			return fmt.Errorf("read model: %w: %w", ErrDiverged, err)
		}
		return each(piece)
	}
}
