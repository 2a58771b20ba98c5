package scene

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// modelFiles are the files of a COLMAP model, without extension.
var modelFiles = [...]string{"cameras", "images", "points3D"}

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

// foundModel is a folder with a COLMAP model.
type foundModel struct {
	dir    string
	number int    // as in sparse/N; 0 where folders are not numbered
	images uint64 // that it claims to have registered
}

// discover finds the model to read: the first place that has any, and there the
// one with most images or, with number >= 0, the one of that number.
func discover(root string, number int) (foundModel, []Warning, error) {
	if err := checkRoot(root); err != nil {
		return foundModel{}, nil, err
	}
	for _, place := range modelPlaces {
		dir := filepath.Join(root, filepath.FromSlash(place.dir))
		models := modelsIn(dir, place.numbered, ".bin")
		if len(models) == 0 {
			continue
		}
		if number >= 0 {
			return chooseModel(dir, models, number)
		}
		best, warning := largestModel(models)
		return best, warning, nil
	}
	return foundModel{}, nil, noModel(root)
}

// checkRoot refuses a capture that is no folder.
func checkRoot(root string) error {
	info, err := os.Stat(root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &Error{Op: "open capture", Path: root, Err: errors.New("no such folder"),
			Hint: "check the spelling; a capture is a folder with images/ and sparse/0/"}
	case err != nil:
		return &Error{Op: "open capture", Path: root, Err: trimPath(err), Kind: readKind(err), Hint: "check the permissions of the folder"}
	case !info.IsDir():
		return &Error{Op: "open capture", Path: root, Err: errors.New("this is a file, not a folder"),
			Hint: "name the folder that holds images/ and sparse/0/"}
	}
	return nil
}

// modelsIn lists the models in dir, or with numbered in its folders 0, 1, 2...
// A folder counts when it has any file of a model: what is missing is reported
// by name when the model is read.
func modelsIn(dir string, numbered bool, ext string) []foundModel {
	if !numbered {
		if !hasModel(dir, ext) {
			return nil
		}
		return []foundModel{{dir: dir, images: countColmapImages(dir)}}
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
		if sub := filepath.Join(dir, e.Name()); hasModel(sub, ext) {
			out = append(out, foundModel{dir: sub, number: n, images: countColmapImages(sub)})
		}
	}
	slices.SortFunc(out, func(a, b foundModel) int { return a.number - b.number })
	return out
}

func hasModel(dir, ext string) bool {
	return slices.ContainsFunc(modelFiles[:], func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name+ext))
		return err == nil && !info.IsDir()
	})
}

// chooseModel gives the model of a number.
func chooseModel(dir string, models []foundModel, number int) (foundModel, []Warning, error) {
	var have []string
	for _, m := range models {
		if m.number == number {
			return m, nil, nil
		}
		have = append(have, strconv.Itoa(m.number))
	}
	return foundModel{}, nil, &Error{Op: "find model", Path: dir, Kind: ErrUsage,
		Err:  fmt.Errorf("there is no model %d", number),
		Hint: "these models are there: " + strings.Join(have, ", ")}
}

// largestModel gives the model with most images, the first of equals, and names
// the others in a warning.
func largestModel(models []foundModel) (foundModel, []Warning) {
	best := 0
	for i, m := range models {
		if m.images > models[best].images {
			best = i
		}
	}
	if len(models) == 1 {
		return models[0], nil
	}
	w := Warning{Code: "other-models", Count: len(models) - 1}
	for i, m := range models {
		if i != best && len(w.Names) < maxNames {
			w.Names = append(w.Names, fmt.Sprintf("%s (%d images)", filepath.ToSlash(m.dir), m.images))
		}
	}
	w.Text = fmt.Sprintf("took model %d with %d images, the most of %d; --model N takes another", models[best].number, models[best].images, len(models))
	return models[best], []Warning{w}
}

// noModel says what was searched, and what to do about captures that look like
// something else.
func noModel(root string) error {
	places := make([]string, 0, len(modelPlaces))
	for _, p := range modelPlaces {
		dir := filepath.Join(root, filepath.FromSlash(p.dir))
		if text := modelsIn(dir, p.numbered, ".txt"); len(text) > 0 {
			at := shellWord(text[0].dir)
			return &Error{Op: "find model", Path: text[0].dir, Err: errors.New("this COLMAP model is in text form; only the binary form is read"),
				Hint: fmt.Sprintf("convert it: colmap model_converter --input_path %s --output_path %s --output_type BIN", at, at)}
		}
		if p.numbered {
			p.dir += "/0"
		}
		places = append(places, p.dir)
	}
	err := &Error{Op: "find model", Path: root,
		Err:  fmt.Errorf("no COLMAP model: there is no cameras.bin, images.bin or points3D.bin in any of %s", strings.Join(places, ", ")),
		Hint: "a capture is a folder with the photos in images/ and COLMAP's binary model in sparse/0/"}
	entries, readErr := os.ReadDir(root)
	switch {
	case readErr == nil && len(entries) == 0:
		err.Err = fmt.Errorf("the folder is empty; searched: %s", strings.Join(places, ", "))
	case slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return strings.HasPrefix(e.Name(), "transforms") && strings.HasSuffix(e.Name(), ".json")
	}):
		err.Hint = "this looks like a capture described by transforms.json, which is not read yet: run COLMAP on its photos"
	}
	return err
}
