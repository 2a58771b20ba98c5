package pipeline

import (
	"fmt"

	"vksplat/scene"
)

// finitePieces refuses pieces of a model that hold NaN or infinite numbers.
func finitePieces(each func(piece *scene.Splats) error) func(piece *scene.Splats) error {
	return func(piece *scene.Splats) error {
		if err := piece.Validate(); err != nil {
			return fmt.Errorf("read model: %w: %w", ErrDiverged, err)
		}
		return each(piece)
	}
}
