package train

import (
	"errors"
	"fmt"

	"vksplat/internal/run/convert"
	"vksplat/scene/splatfile"
)

// writeExports converts the model of a step, which is on disk.
func (o *outputs) writeExports(step int) error {
	var errs []error
	for _, path := range o.Exports {
		err := o.place.own.Begin(splatfile.Outputs(path)...)
		if err == nil {
			err = convert.ExportTo(o.console, modelFile(o.Out, step), path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("export %s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}
