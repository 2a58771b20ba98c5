package capture

import (
	"errors"
	"os"
	"path/filepath"

	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/reconstruct"
	"vksplat/internal/strictjson"
)

// Report is the content of verdict.json: what the command printed, for programs.
type Report struct {
	By       string `json:"by"`
	ExitCode int    `json:"exit_code"`
	Error    string `json:"error,omitempty"` // where the exit code is not 0
	Hint     string `json:"hint,omitempty"`
	Colmap   string `json:"colmap,omitempty"` // version; none: this program found the cameras

	Photos     int                `json:"photos"`           // whose cameras are searched for
	Registered int                `json:"registered"`       // of them, with a camera in the component that was taken
	Added      *Added             `json:"added,omitempty"`  // with --more
	Taken      *component         `json:"taken,omitempty"`  // the component
	Others     []*component       `json:"other_components"` //
	Earth      *reconstruct.Earth `json:"earth,omitempty"`  // where it is, by GPS
	Dropped    []Dropped          `json:"dropped"`          // photos without a camera in it
	LeftOut    []Dropped          `json:"left_out"`         // files that are no whole photos, which are not used
	Advice     []string           `json:"advice"`
	Stages     []stamp            `json:"stages"`
	Coverage   string             `json:"coverage,omitempty"` // picture, below the scene's folder
}

// ReadReport reads the report in the folder of a scene; nil where vksplat capture wrote none there.
func ReadReport(dir string) *Report {
	v := &Report{}
	if err := strictjson.ReadFile(filepath.Join(dir, reportFile), v); err != nil || v.By != byName {
		return nil
	}
	return v
}

// Added counts the photos that were to be added to a scene.
type Added struct {
	Photos     int `json:"photos"`
	Registered int `json:"registered"`
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

// newReport begins the report.
func (r *running) newReport() *Report {
	v := &Report{By: r.stages.state.By, Photos: len(r.photos), Others: []*component{}, Dropped: []Dropped{},
		Advice: []string{}, LeftOut: append([]Dropped{}, r.broken...)}
	if r.own == nil {
		v.Colmap = r.mapper.colmap.version
	}
	return v
}

// report writes what came of the command once it has done anything: v or, where it failed, the error. It returns how
// the command ended.
func (r *running) report(v *Report, failed error) error {
	if len(r.stages.state.Stages) == 0 {
		return failed
	}
	if failed != nil {
		v = r.newReport()
		v.Error, v.Hint, v.ExitCode = failed.Error(), fault.Hint(failed), fault.ExitCode(failed)
	} else if output.IsFile(r.o.in(coverageFile)) {
		v.Coverage = coverageFile
	}
	v.Stages = r.stages.state.Stages
	path := r.o.in(reportFile)
	err := r.stages.written.Begin(path)
	if err == nil {
		err = output.WriteJSON(path, v)
	}
	if err == nil {
		err = r.stages.written.End()
	}
	if failed != nil {
		return failed
	}
	return err
}
