package scene

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// photoFolders are the names under which a capture's photos are searched.
var photoFolders = [...]string{"images", "input"}

// photoDir gives the folder of a capture's photos: dir, below root unless it is
// absolute, or else the first of photoFolders that exists.
func photoDir(root, dir string) (string, error) {
	if dir != "" {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(root, dir)
		}
		if !isDir(dir) {
			return "", &Error{Op: "find photos", Path: dir, Err: errors.New("no such folder"), Hint: "--images names a folder below the capture's, or an absolute one"}
		}
		return dir, nil
	}
	for _, name := range photoFolders {
		if sub := filepath.Join(root, name); isDir(sub) {
			return sub, nil
		}
	}
	return "", &Error{Op: "find photos", Path: root, Err: fmt.Errorf("there is no folder %s", strings.Join(photoFolders[:], " or ")),
		Hint: "put the photos into images/ or name their folder with --images DIR"}
}

func isDir(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// isPhoto says whether a file's name is that of a photo that can be decoded.
func isPhoto(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png", ".webp":
		return true
	}
	return false
}

// photoIndex holds the photos of a folder and its subfolders.
type photoIndex struct {
	dir    string
	names  []string            // relative, with slashes, in lexical order
	folded map[string][]string // by lower-case name
	stems  map[string][]string // by lower-case name without extension
	used   map[string]bool     // names that cameras have taken
}

// indexPhotos walks through dir. Links to folders are not followed: that is left
// to exact names. Hidden files and folders are no photos.
func indexPhotos(dir string) (*photoIndex, error) {
	x := &photoIndex{dir: dir, folded: map[string][]string{}, stems: map[string][]string{}, used: map[string]bool{}}
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, &Error{Op: "list photos", Path: dir, Err: trimPath(err), Kind: readKind(err)}
	}
	err = filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if p != top && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if d.IsDir() || !isPhoto(d.Name()) {
			return nil
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		x.add(filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		return nil, &Error{Op: "list photos", Path: dir, Err: err, Kind: readKind(err), Hint: "check the permissions of the folder and what is in it"}
	}
	return x, nil
}

func (x *photoIndex) add(name string) {
	x.names = append(x.names, name)
	lower := strings.ToLower(name)
	x.folded[lower] = append(x.folded[lower], name)
	stem := strings.TrimSuffix(lower, path.Ext(lower))
	x.stems[stem] = append(x.stems[stem], name)
}

// find gives each camera without a Path its photo: the file of exactly that
// name, or else of the same name in other case, or else of the same stem with
// another extension. Exact names go first, so that no file is taken for two.
func (x *photoIndex) find(cams []Camera) {
	exact := func(name string) []string {
		info, err := os.Stat(filepath.Join(x.dir, filepath.FromSlash(name)))
		if err != nil || info.IsDir() {
			return nil
		}
		return []string{name}
	}
	folded := func(name string) []string { return x.folded[strings.ToLower(name)] }
	stem := func(name string) []string {
		lower := strings.ToLower(name)
		if whole := x.stems[lower]; len(whole) > 0 { // a name without extension
			return whole
		}
		return x.stems[strings.TrimSuffix(lower, path.Ext(lower))]
	}
	for _, candidates := range []func(string) []string{exact, folded, stem} {
		for i := range cams {
			if cams[i].Path != "" {
				continue
			}
			for _, name := range candidates(cams[i].Name) {
				if !x.used[name] {
					x.used[name] = true
					cams[i].Path = filepath.Join(x.dir, filepath.FromSlash(name))
					break
				}
			}
		}
	}
}

// unused lists the photos that no camera took.
func (x *photoIndex) unused() []string {
	var out []string
	for _, name := range x.names {
		if !x.used[name] {
			out = append(out, name)
		}
	}
	return out
}

// photoSize reads the size in pixels from the header of a JPEG, PNG or WebP.
func photoSize(file string) (width, height int, err error) {
	if err := regular(file); err != nil {
		return 0, 0, err
	}
	f, err := os.Open(file)
	if err != nil {
		return 0, 0, trimPath(err)
	}
	defer f.Close() // only read from
	r := bufio.NewReader(f)
	head, _ := r.Peek(webpHead) // a shorter file is told by its first bytes
	switch {
	case isJPEG(head):
		width, height, err = jpegSize(r)
	case isPNG(head):
		var header image.Config
		header, err = png.DecodeConfig(r)
		width, height = header.Width, header.Height
	case isWebP(head):
		width, height, err = webpSize(head)
	default:
		err = notPhoto(head)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends within its header")
	}
	if err == nil && (width <= 0 || height <= 0 || width > maxPixels/height) {
		err = fmt.Errorf("the header claims %d x %d pixels", width, height)
	}
	return width, height, err
}

// sameAspect says whether a photo of w x h can be a scaled copy of one of
// calibrated size cw x ch: the factors of the axes agree within 1 %, or one side is
// within 2 pixels of what the other side's factor gives.
func sameAspect(w, h, cw, ch int) bool {
	x, y := float64(w)/float64(cw), float64(h)/float64(ch)
	return math.Abs(x/y-1) <= 0.01 || math.Abs(float64(w)-float64(cw)*y) <= 2 || math.Abs(float64(h)-float64(ch)*x) <= 2
}

// wideLimit is the width in pixels that automatic reduction allows.
const wideLimit = 1600

// trainedSize gives the size that a photo of w x h is trained on: a downscale of 0
// brings widths above wideLimit to wideLimit (INRIA's rule), others divide.
func trainedSize(w, h, downscale int) (int, int) {
	switch {
	case downscale == 0 && w > wideLimit:
		return wideLimit, max(int(float64(h)*wideLimit/float64(w)), 1)
	case downscale > 1:
		n := float64(downscale)
		return max(int(math.RoundToEven(float64(w)/n)), 1), max(int(math.RoundToEven(float64(h)/n)), 1)
	}
	return w, h
}
