package suite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/render"
	"vksplat/internal/strictjson"
	"vksplat/internal/wording"
)

// survey looks, before the first run, at what all of them need and at what earlier calls have left: a suite takes days,
// and what is wrong with its last run is known at once.
func (p *Plan) survey(runs []*suiteRun) error {
	var err error
	if p.weightsHash, err = hashOf(p.Weights, &fault.Error{Op: "read LPIPS weights",
		Hint: "tools/lpips_weights.py makes this file; without it leave lpips_weights out"}); err != nil {
		return err
	}
	var changed []error
	for _, r := range runs {
		if r.listHash, err = hashOf(r.testList, &fault.Error{Op: "read list of photos",
			Hint: "name a text file with the name of a photo on each line"}); err != nil {
			return err
		}
		switch err := r.recall(); {
		case errors.Is(err, errOtherSettings):
			changed = append(changed, err)
		case err != nil:
			return err
		}
	}
	if len(changed) > 0 {
		err := changed[0]
		if more := len(changed) - 1; more > 0 {
			err = fmt.Errorf("%w, and so do the folders of %s more", err, cli.Count(more, "run"))
		}
		return p.wrong("choose another out, restore the settings, or remove what is there", "%w", err)
	}
	if err := p.missing(runs); err != nil {
		return err
	}
	return p.dropped(runs)
}

// hashOf reads a file once: with another content all is done again. It is "" of no file. A failure is worded by as.
func hashOf(path string, as *fault.Error) (string, error) {
	if path == "" {
		return "", nil
	}
	sum, err := atomicfile.SHA256(path)
	if err != nil {
		as.Path, as.Err = path, fault.Pathless(err)
		return "", as
	}
	return sum, nil
}

// readOwn reads a JSON file that a suite wrote, if it is there.
func readOwn(path string, v any, hint string) (found bool, err error) {
	err = strictjson.ReadFile(path, v)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	}
	return false, fault.WithHint(fmt.Errorf("read %s: %w: %w", path, fault.ErrData, fault.Pathless(err)), hint)
}

// missing is the error of data that runs which are not done need and that is not there, all of it together.
func (p *Plan) missing(runs []*suiteRun) error {
	var captures, photos []string
	for _, r := range runs {
		switch {
		case r.done():
		case !output.IsFolder(r.scene) && !output.IsFile(r.scene):
			captures = append(captures, r.scene)
		case r.needs != "" && !output.IsFolder(r.needs):
			photos = append(photos, r.needs)
		}
	}
	if len(captures)+len(photos) == 0 {
		return nil
	}
	var parts []string
	for i, list := range [][]string{captures, photos} {
		if list = slices.Compact(list); len(list) > 0 { // runs of a capture follow each other
			parts = append(parts, fmt.Sprintf("%s missing: %s", render.Are(len(list), []string{"capture", "folder"}[i]),
				strings.Join(list, ", ")))
		}
	}
	hint := "copy them there, correct data or path, or name those that are there with only = [...]"
	if len(photos) > 0 {
		hint += "; these hold reduced photos, and those of full size are reduced with source = \"resized\""
	}
	return fault.WithHint(fmt.Errorf("%s: %w: %s", p.name, fault.ErrData, wording.Printable(strings.Join(parts, "; "))),
		hint)
}

// dropped refuses to write tables in the place of those that have results of runs which are still there, and which are
// not asked for any more.
func (p *Plan) dropped(runs []*suiteRun) error {
	var former suiteResults
	if _, err := readOwn(filepath.Join(p.Out, suiteJSON), &former,
		"suite writes this file; move it away, or choose another out"); err != nil {
		return err
	}
	for _, f := range former.Runs {
		asked := slices.ContainsFunc(runs, func(r *suiteRun) bool {
			return r.Capture == f.Capture && r.Recipe == f.Recipe && slices.Equal(f.Seeds, r.Seeds)
		})
		if !asked && len(f.Numbers) > 0 && len(f.Seeds) == 1 &&
			output.IsFile(filepath.Join(p.runFolder(f.Capture, f.Recipe, f.Seeds[0]), suiteRecordFile)) {
			return p.wrong("choose another out, ask for these runs too, or remove their folders or "+
				filepath.Join(p.Out, suiteJSON),
				"%s has results of runs that were not requested: %s", filepath.Join(p.Out, suiteMarkdown),
				wording.Printable(f.name()))
		}
	}
	return nil
}
