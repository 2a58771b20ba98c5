package capture

import (
	"errors"
	"os"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
)

// Report is the content of verdict.json: what the command printed, for programs.
type Report struct {
	By       string `json:"by"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error,omitempty"` // where the exit code is not 0
	Hint     string `json:"hint,omitempty"`
	Colmap   string `json:"colmap"` // version

	Photos     int          `json:"photos"`           // that COLMAP was given
	Registered int          `json:"registered"`       // of them, with a camera in the component that was taken
	Taken      *component   `json:"taken,omitempty"`  // the component
	Others     []*component `json:"other_components"` //
	Dropped    []Dropped    `json:"dropped"`          // photos without a camera in it
	LeftOut    []Dropped    `json:"left_out"`         // files that are no whole photos, which COLMAP was not given
	Advice     []string     `json:"advice"`
	Stages     []stamp      `json:"stages"`
	Coverage   string       `json:"coverage,omitempty"` // picture, below the scene's folder
}

// dropReport removes the report of an earlier call, so that there is none if this one is killed.
func (r *running) dropReport() error {
	path := r.o.in(reportFile)
	if !r.o.Overwrite {
		foreign := r.stages.written.Foreign([]string{path})
		if err := output.RefuseForeign(foreign, "or replace it with "+fault.Setting("overwrite")); err != nil {
			return err
		}
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return output.FolderError(r.o.Out, err)
	}
	return nil
}

// report writes what came of the command, which may have failed, once it has done anything. It returns how it ended.
func (r *running) report(v *verdict, failed error) error {
	if len(r.stages.state.Stages) == 0 {
		return failed
	}
	f := &Report{By: r.stages.state.By, ExitCode: fault.ExitCode(failed), Hint: fault.Hint(failed),
		Colmap: r.mapper.colmap.version, Photos: len(r.photos), Others: []*component{}, Dropped: []Dropped{},
		Advice: []string{}, LeftOut: append([]Dropped{}, r.broken...), Stages: r.stages.state.Stages}
	if failed != nil {
		f.Error = failed.Error()
	}
	if v != nil {
		f.Registered, f.Taken = v.taken.Photos, v.taken
		f.Others, f.Dropped = append(f.Others, v.others...), append(f.Dropped, v.dropped...)
		f.Advice = append(f.Advice, v.advice...)
		if output.IsFile(r.o.in(coverageFile)) {
			f.Coverage = coverageFile
		}
	}
	path := r.o.in(reportFile)
	err := r.stages.written.Begin(path)
	if err == nil {
		err = output.WriteJSON(path, f)
	}
	if err == nil {
		err = r.stages.written.End()
	}
	if failed != nil {
		return failed
	}
	return err
}
