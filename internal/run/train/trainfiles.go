package train

import (
	"errors"
	"fmt"

	"vksplat/internal/run/convert"
	"vksplat/scene/splatfile"
)

// writeExports converts the model of a step, which is on disk.
func (r *Run) writeExports(step int) error {
	var errs []error
	for _, path := range r.Exports {
		err := r.place.own.Begin(splatfile.Outputs(path)...)
		if err == nil {
			err = convert.ExportTo(r.Console, modelFile(r.Out, step), path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}
