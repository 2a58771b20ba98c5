package convert

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline"
	"vksplat/scene/splatfile"
)

// Exports lists the files that train writes at the end beside its model. Each flag adds one.
type Exports []string

func (f *Exports) Type() string   { return "FILE" }
func (f *Exports) String() string { return strings.Join(*f, " ") }

// Set adds a file whose name says a format.
func (f *Exports) Set(s string) error {
	if _, err := writableFormat(s, ""); err != nil {
		return err
	}
	if slices.ContainsFunc(*f, func(other string) bool { return filepath.Clean(other) == filepath.Clean(s) }) {
		return fault.Usagef("name each file once", "%s is named twice", s)
	}
	*f = append(*f, s)
	return nil
}

// ExportTo converts a model to the format that the name of the file to write says.
func ExportTo(console *cli.Console, from, to string) (err error) {
	if _, err := writableFormat(to, ""); err != nil {
		return err
	}
	model, err := splatfile.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	return Export(console, model, to)
}

// Export writes a model in the format that the name of the file to write says.
func Export(console *cli.Console, model splatfile.Source, to string) error {
	f, err := writableFormat(to, "")
	if err != nil {
		return err
	}
	lost, err := f.Write(to, model, splatfile.WriteOptions{Generator: "vksplat " + cli.Version()})
	if err != nil {
		return err
	}
	for _, text := range lost {
		console.Warn(to + " is lossy: " + text)
	}
	size := ""
	if bytes, err := splatfile.Size(to); err == nil {
		size = ", " + pipeline.BytesText(bytes)
	}
	console.Printf("export: %s: %s%s\n", to, f.Name, size)
	return nil
}

// RefuseExports refuses to replace files that exports, given by a setting, name, but for those that the run whose list
// is own wrote, where it goes on.
func RefuseExports(own *output.Written, exports Exports, setting string, resumes, overwrite bool) error {
	for _, path := range exports {
		for _, file := range splatfile.Outputs(path) {
			if resumes && own.Owns(file) {
				continue
			}
			if err := output.RefuseExisting(setting, overwrite, file); err != nil {
				return err
			}
		}
	}
	return nil
}
