package captured

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/pipeline/recipe"
	"vksplat/scene"
	"vksplat/scene/inspect"
)

// PictureNames returns for each camera the relative path of its picture: the
// photo's name with the extension .png, folders kept. Photos that differ in the
// extension alone keep theirs in front of .png. No path leaves the folder it is
// joined to, whatever the capture says.
func PictureNames(cams []scene.Camera) []string {
	stem := func(name string) string {
		clean := path.Clean("/" + filepath.ToSlash(name))[1:]
		return strings.TrimSuffix(clean, path.Ext(clean))
	}
	count := map[string]int{}
	for _, c := range cams {
		count[strings.ToLower(stem(c.Name))]++
	}
	names := make([]string, len(cams))
	for i, c := range cams {
		s := stem(c.Name)
		if count[strings.ToLower(s)] > 1 || s == "" || strings.HasSuffix(s, "/") {
			s = path.Clean("/" + filepath.ToSlash(c.Name))[1:]
		}
		names[i] = filepath.FromSlash(s + output.PictureSuffix)
	}
	return names
}

// RefuseInside refuses a folder to write, of the setting name, that is one of the capture's.
func RefuseInside(folder, name string, c *scene.Capture) error {
	const hint = "choose a folder of its own, outside of the capture"
	out, root := output.Resolved(folder), output.Resolved(c.Root)
	if out == root {
		return fault.Usagef(hint, "%s: %s is the capture itself", fault.Named(name), folder)
	}
	dirs := []string{c.Images, c.Model}
	for i := range c.Cameras {
		if mask := c.Cameras[i].Mask; mask != "" {
			dirs = append(dirs, filepath.Dir(mask))
			break
		}
	}
	for _, dir := range dirs {
		// A model of JSON is a file. Photos may be in the capture's own folder, and in several whose common one holds
		// the capture as well.
		if dir = output.Resolved(dir); output.IsFolder(dir) && output.Within(out, dir) && !output.Within(root, dir) {
			return fault.Usagef(hint, "%s: %s is in %s, which belongs to the capture", fault.Named(name), folder, dir)
		}
		if output.Within(dir, out) && output.Within(out, root) {
			return fault.Usagef(hint, "%s: %s holds %s, which belongs to the capture", fault.Named(name), folder, dir)
		}
	}
	return nil
}

// CamerasBeside are the names of files of cameras that are looked for near a model, and how many folders up: OUT is two
// above the models of a run.
var CamerasBeside = []string{"cameras.json", "transforms.json", "transforms_train.json"}

const foldersUp = 2

// FindCameras returns the file of cameras that is nearest to a model, of some names, "" for none. The model's own come
// first (output.CamerasSuffix). It looks beside the model and in the OUT of a run's; to guess, in all folders up to
// where OUT would be.
func FindCameras(in string, names []string, guess bool) string {
	dir := in
	if !output.IsFolder(in) {
		dir = filepath.Dir(in)
		for name := in; filepath.Ext(name) != "" && name != dir; { // room.compressed.ply is of room.cameras.json
			name = strings.TrimSuffix(name, filepath.Ext(name))
			if file := name + output.CamerasSuffix; output.IsFile(file) {
				return file
			}
		}
	}
	ofRun := filepath.Base(filepath.Dir(dir)) == filepath.Dir(output.ModelFolder)
	for up := range foldersUp + 1 {
		if guess || up == 0 || up == foldersUp && ofRun {
			for _, name := range names {
				if file := filepath.Join(dir, name); output.IsFile(file) {
					return file
				}
			}
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// TellWarnings says what was found while a capture was read.
func TellWarnings(console *cli.Console, c *scene.Capture) {
	for _, w := range c.Warnings {
		if inspect.Note(w) {
			console.Note(w.String())
		} else {
			console.Warn(w.String())
		}
	}
}

// Resolution prints the size of the photos, or the range of sizes.
func Resolution(cams []scene.Camera) string {
	if len(cams) == 0 {
		return "0x0"
	}
	area := func(a, b scene.Camera) int { return a.Width*a.Height - b.Width*b.Height }
	small, large := slices.MinFunc(cams, area), slices.MaxFunc(cams, area)
	text := fmt.Sprintf("%dx%d", large.Width, large.Height)
	if small.Width != large.Width || small.Height != large.Height {
		text = fmt.Sprintf("%dx%d to %s", small.Width, small.Height, text)
	}
	return text
}

// FirstSteps says what follows the photos' size where the first steps train on smaller ones.
func FirstSteps(c *recipe.Config) string {
	if c.NumDownscales == 0 {
		return ""
	}
	return fmt.Sprintf(" (1/%d of width and height at first)", 1<<c.NumDownscales)
}
