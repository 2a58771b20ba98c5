package train

import "vksplat/internal/run/captured"

// apart refuses to write among the files of the capture.
func (r *Run) apart() error {
	if r.Out == "" {
		return nil
	}
	return captured.RefuseInside(r.Out, "model-path", r.Capture)
}
