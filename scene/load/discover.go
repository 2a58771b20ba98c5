package load

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/photo"
)

// modelPlaces are where a capture's models are searched, in this order: folders
// below the root, and whether the models are numbered folders inside.
var modelPlaces = [...]struct {
	dir      string
	numbered bool
}{
	{"sparse", true},
	{"sparse", false},
	{"colmap/sparse", true},
	{"distorted/sparse", true},
	{".", false},
}

// found is a file or model that describes a capture.
type found struct {
	format string
	root   string // the capture's folder
	model  string // folder of a COLMAP model, or the first file of cameras
	files  *colmap.Form
}

// foundModel is a folder with a COLMAP model.
type foundModel struct {
	dir    string
	files  *colmap.Form
	number int    // as in sparse/N; 0 where folders are not numbered
	images uint64 // that it claims to have registered
}

func formatFlag(o scene.LoadOptions) string { return cmp.Or(o.FlagOf, "format") }

// discover finds what describes the capture: of the formats that are asked for the
// first that is there. root may also name a file of cameras.
func discover(root string, o scene.LoadOptions) (found, []scene.Warning, error) {
	if what := discoverFile(root, o.Format); what.format != "" {
		return what, nil, nil
	}
	if err := checkRoot(root); err != nil {
		return found{}, nil, err
	}
	var warnings []scene.Warning
	var out found
	for _, format := range scene.Formats {
		if !asked(o.Format, format) {
			continue
		}
		this, more, err := discoverFormat(root, format, o.Model)
		switch {
		case err != nil:
			return found{}, nil, err
		case this.format == "":
		case out.format == "":
			out, warnings = this, more
		default:
			warnings = append(warnings, scene.Warning{Code: "other-format",
				Text: fmt.Sprintf("using the cameras of %s; %s %s uses those of %s",
					wording.Printable(filepath.ToSlash(out.model)), fault.Setting(formatFlag(o)), this.format,
					wording.Printable(filepath.ToSlash(this.model)))})
		}
	}
	if out.format == "" {
		return found{}, nil, noModel(root, o)
	}
	return out, warnings, nil
}

// asked tells whether a format is the one asked for, or any is.
func asked(option, format string) bool {
	return option == "" || option == scene.FormatAuto || option == format
}

// discoverFormat finds what describes a folder in one format.
func discoverFormat(root, format string, model int) (found, []scene.Warning, error) {
	if format == scene.FormatColmap {
		return discoverModel(root, model)
	}
	files := readers[format].find(root)
	if len(files) == 0 {
		return found{}, nil, nil
	}
	var warnings []scene.Warning
	if more := files[1:]; len(more) > 0 {
		w := scene.Warning{Code: "other-files", Count: len(more),
			Text: fmt.Sprintf("using the cameras of %s; name another file of the same kind to use that",
				wording.Printable(filepath.ToSlash(files[0])))}
		for _, f := range scene.FirstNames(more) {
			w.Names = append(w.Names, filepath.ToSlash(f))
		}
		warnings = append(warnings, w)
	}
	return found{format: format, root: root, model: files[0]}, warnings, nil
}

// discoverFile tells what a file of cameras is that is named in place of its folder.
func discoverFile(file, option string) (what found) {
	if fault.Regular(file) != nil {
		return what
	}
	what.root, what.model = filepath.Dir(file), file
	// Some formats have their file in a folder of the capture's, as bundle/bundle.out.
	for _, root := range []string{filepath.Join(what.root, ".."), what.root} {
		for _, format := range scene.Formats[1:] { // a COLMAP model is a folder
			if asked(option, format) && slices.Contains(readers[format].find(root), filepath.Clean(file)) {
				return found{format: format, root: root, model: file}
			}
		}
	}
	if strings.EqualFold(filepath.Ext(file), ".json") { // under any name
		switch option {
		case scene.FormatBlender:
			what.format = scene.FormatBlender
		case "", scene.FormatAuto, scene.FormatTransforms:
			what.format = scene.FormatTransforms
		}
	}
	return what
}

// discoverModel finds the COLMAP model to read: the first place that has any, and
// there the one with most images or, with number >= 0, the one of that number.
func discoverModel(root string, number int) (found, []scene.Warning, error) {
	for _, place := range modelPlaces {
		dir := filepath.Join(root, filepath.FromSlash(place.dir))
		models := modelsIn(dir, place.numbered)
		if len(models) == 0 {
			continue
		}
		if number >= 0 {
			return chooseModel(root, dir, models, number)
		}
		best, warnings := largestModel(models)
		return best.found(root), warnings, nil
	}
	return found{}, nil, nil
}

func (m foundModel) found(root string) found {
	return found{format: scene.FormatColmap, root: root, model: m.dir, files: m.files}
}

// checkRoot refuses a capture that is no folder.
func checkRoot(root string) error {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Error{Op: "open capture", Path: root, Err: errors.New("no such folder"),
			Hint: "check the spelling; a capture is a folder with images/ and sparse/0/, or with a transforms.json"}
	case err != nil:
		return &fault.Error{Op: "open capture", Path: root, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: "check the permissions of the folder"}
	case !info.IsDir() && isVideo(root):
		return &fault.Error{Op: "open capture", Path: root, Err: errors.New("this is a video"),
			Hint: captureCommand(root, strings.TrimSuffix(root, filepath.Ext(root))+"_scene")}
	case !info.IsDir():
		return &fault.Error{Op: "open capture", Path: root, Err: errors.New("this is a file, not a folder"),
			Hint: "name the folder that holds images/ and sparse/0/, or a transforms.json"}
	}
	return nil
}

// isVideo tells whether a file has the name of a video.
func isVideo(path string) bool {
	kind := photo.ForeignKindOf(path)
	return kind != nil && kind.Video
}

// modelsIn lists the models in dir, or with numbered in its folders 0, 1, 2...
// A folder counts when it has any file of a model: what is missing is reported
// by name when the model is read.
func modelsIn(dir string, numbered bool) []foundModel {
	if !numbered {
		files, ok := colmap.FormOf(dir)
		if !ok {
			return nil
		}
		return []foundModel{{dir: dir, files: files}}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // the usual reason is that there is no such folder
	}
	var out []foundModel
	for _, e := range entries {
		n, err := strconv.Atoi(e.Name())
		if err != nil || n < 0 || strconv.Itoa(n) != e.Name() {
			continue
		}
		sub := filepath.Join(dir, e.Name())
		if files, ok := colmap.FormOf(sub); ok {
			out = append(out, foundModel{dir: sub, files: files, number: n})
		}
	}
	slices.SortFunc(out, func(a, b foundModel) int { return a.number - b.number })
	return out
}

func chooseModel(root, dir string, models []foundModel, number int) (found, []scene.Warning, error) {
	var have []string
	for _, m := range models {
		if m.number == number {
			return m.found(root), nil, nil
		}
		have = append(have, strconv.Itoa(m.number))
	}
	return found{}, nil, &fault.Error{Op: "find model", Path: dir, Kind: fault.ErrUsage,
		Err:  fmt.Errorf("there is no model %d", number),
		Hint: "these models are there: " + strings.Join(have, ", ")}
}

// largestModel gives the model with most images, the first of equals, and names
// the others in a warning.
func largestModel(models []foundModel) (foundModel, []scene.Warning) {
	if len(models) == 1 {
		return models[0], nil
	}
	best := 0
	for i := range models {
		models[i].images = models[i].files.CountImages(models[i].dir)
		if models[i].images > models[best].images {
			best = i
		}
	}
	w := scene.Warning{Code: "other-models", Count: len(models) - 1}
	for i, m := range models {
		if i != best && len(w.Names) < scene.MaxNames {
			w.Names = append(w.Names, fmt.Sprintf("%s (%d images)", filepath.ToSlash(m.dir), m.images))
		}
	}
	w.Text = fmt.Sprintf("using model %d with %d images, the most of %d; %s N uses another",
		models[best].number, models[best].images, len(models), fault.Setting("model"))
	return models[best], []scene.Warning{w}
}

func noModel(root string, o scene.LoadOptions) error {
	places := make([]string, 0, len(modelPlaces))
	for _, p := range modelPlaces {
		if p.numbered {
			p.dir += "/0"
		}
		places = append(places, p.dir)
	}
	searched := strings.Join(places, ", ")
	err := &fault.Error{Op: "find model", Path: root}
	switch reader, known := readers[o.Format]; {
	case known:
		err.Err, err.Hint = fmt.Errorf("there is no %s", reader.what), "leave out "+fault.Setting(formatFlag(o))+
			", or name the folder that has the file"
		return err
	case o.Format == scene.FormatColmap:
		err.Err = fmt.Errorf("no COLMAP model: there is no cameras, images or points3D, as .bin or .txt, in any of %s",
			searched)
	default:
		err.Err = fmt.Errorf("no cameras: there is no COLMAP model in any of %s, %s", searched, otherWhats())
	}
	err.Hint = "a capture is a folder with the photos in images/ and COLMAP's model in sparse/0/, or with a " +
		"transforms.json or what another program exported"
	if entries, readErr := os.ReadDir(root); readErr == nil && len(entries) == 0 {
		err.Err = fmt.Errorf("the folder is empty; searched: %s", searched)
	}
	if hint := captureHint(root); hint != "" {
		err.Hint = hint
	}
	if around := filepath.Join(root, ".."); describesCapture(around) {
		err.Hint = fmt.Sprintf("this folder is part of a capture: name that, %s", photo.ShellWord(around))
	}
	return err
}

// describesCapture reports whether a folder has the cameras of a capture.
func describesCapture(dir string) bool {
	for _, r := range readers {
		if len(r.find(dir)) > 0 {
			return true
		}
	}
	what, _, err := discoverModel(dir, scene.AnyModel)
	return err == nil && what.format != ""
}

// IsCapture tells whether a folder has the cameras of a capture. Whether they can be read, Capture says.
func IsCapture(dir string) bool { return describesCapture(dir) }

// IsFootage tells whether a path is a video, or a folder of photos or videos that describes no capture: they lie in the
// folder itself, and nothing says where they were taken.
func IsFootage(path string) bool {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return err == nil && isVideo(path)
	}
	photos, foreign, video := findFootage(path)
	if photos == "" {
		photos = filepath.Dir(cmp.Or(foreign, video))
	}
	return filepath.Clean(photos) == filepath.Clean(path) && !describesCapture(path) &&
		!describesCapture(filepath.Join(path, ".."))
}

// captureHint gives the command that finds the cameras of photos, or of a video, in a folder; "" if there are none.
func captureHint(root string) string {
	photos, foreign, video := findFootage(root)
	switch {
	case photos != "":
	case foreign != "":
		photos = filepath.Dir(foreign)
	case video != "":
		return captureCommand(video, beside(root))
	default:
		return ""
	}
	if filepath.Clean(photos) == filepath.Clean(root) {
		return captureCommand(photos, beside(root))
	}
	return captureCommand(photos, root)
}

func captureCommand(of, scene string) string {
	return "find their cameras first: " +
		fault.Command(fmt.Sprintf("capture %s -o %s", photo.ShellWord(of), photo.ShellWord(scene)))
}

// beside names a new folder for the scene of photos in a folder.
func beside(root string) string {
	if root = filepath.Clean(root); filepath.Base(root) == "." || filepath.Base(root) == ".." {
		return "scene"
	}
	return root + "_scene"
}

// findFootage gives the folder of photos of a capture without cameras, a photo that is not decoded, and a video.
func findFootage(root string) (photos, foreign, video string) {
	for _, name := range append(photo.Folders[:], ".") {
		dir := filepath.Join(root, name)
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			file := filepath.Join(dir, e.Name())
			switch k := photo.ForeignKindOf(e.Name()); {
			case e.IsDir() || strings.HasPrefix(e.Name(), "."):
			case photos == "" && photo.IsPhoto(e.Name()):
				photos = dir
			case k != nil && k.Video && video == "":
				video = file
			case k != nil && !k.Video && foreign == "":
				foreign = file
			}
		}
	}
	return photos, foreign, video
}
