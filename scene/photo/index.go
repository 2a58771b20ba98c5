package photo

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

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/jpeg"
)

// Folders are the names under which a capture's photos are searched.
var Folders = [...]string{"images", "input"}

// Dir gives the folder of a capture's photos: dir, below root unless it is
// absolute, or else the first of photoFolders that exists.
func Dir(root, dir string) (string, error) {
	if dir != "" {
		return Below(root, dir, "find photos", "images")
	}
	for _, name := range Folders {
		if sub := filepath.Join(root, name); atomicfile.IsDir(sub) {
			return sub, nil
		}
	}
	return "", &fault.Error{Op: "find photos", Path: root,
		Err: fmt.Errorf("there is no folder %s, and no photo of the model next to it",
			strings.Join(Folders[:], " or ")),
		Hint: "put the photos into images/ or name their folder with " + fault.Setting("images") + " DIR"}
}

// Below gives the folder that a setting names, below root unless it is absolute.
func Below(root, dir, op, setting string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	info, err := os.Stat(dir)
	e := &fault.Error{Op: op, Path: dir,
		Hint: fault.Setting(setting) + " names a folder below the capture's, or an absolute one"}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e.Err = errors.New("no such folder")
	case err != nil:
		e.Err, e.Kind = fault.TrimPath(err), fault.ReadKind(err)
	case !info.IsDir():
		e.Err = errors.New("this is a file, and a folder is wanted")
		e.Hint += ": of one file give the folder that it is in"
	default:
		return dir, nil
	}
	return "", e
}

// FolderOf finds where a capture without any of the usual folders has the photos of some names: beside its model, or in
// another folder below root, the one that has most. "" if none has any.
func FolderOf(root string, names []string) (found string) {
	dirs, locator := []string{root}, NewLocator(root)
	for _, dir := range locator.folders()[len(Folders):] {
		dirs = append(dirs, filepath.Join(root, dir))
	}
	most := 0
	for _, dir := range dirs {
		n := 0
		for _, name := range names {
			if LeadsOut(name) {
				name = path.Base(name)
			}
			if locator.Named(filepath.Join(dir, filepath.FromSlash(name))) != "" {
				n++
			}
		}
		if n > most {
			found, most = dir, n
		}
	}
	return found
}

// IsPhoto says whether a file's name is that of a photo that can be decoded.
func IsPhoto(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png", ".webp":
		return true
	}
	return false
}

// Index holds the photos of a folder and its subfolders.
type Index struct {
	dir    string
	Names  []string            // relative, with slashes, in lexical order
	folded map[string][]string // by scene.FoldName
	stems  map[string][]string // by the same without extension
	used   map[string]bool     // names that cameras have taken
}

// IndexDir walks through dir. Links to folders are not followed: that is left
// to exact names. Hidden files and folders are no photos.
func IndexDir(dir string) (*Index, error) {
	x := &Index{dir: dir, folded: map[string][]string{}, stems: map[string][]string{}, used: map[string]bool{}}
	top, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, &fault.Error{Op: "list photos", Path: dir, Err: fault.TrimPath(err), Kind: fault.ReadKind(err)}
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
		if d.IsDir() || !IsPhoto(d.Name()) {
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
		return nil, &fault.Error{Op: "list photos", Path: dir, Err: err, Kind: fault.ReadKind(err),
			Hint: "check the permissions of the folder and what is in it"}
	}
	return x, nil
}

func (x *Index) add(name string) {
	x.Names = append(x.Names, name)
	folded := scene.FoldName(name)
	x.folded[folded] = append(x.folded[folded], name)
	stem := strings.TrimSuffix(folded, path.Ext(folded))
	x.stems[stem] = append(x.stems[stem], name)
}

// lookups give the files that a name may mean: the one of exactly that name, or else those of the same name in other
// spelling, or else those of the same stem with another extension.
func (x *Index) lookups() [3]func(name string) []string {
	exact := func(name string) []string {
		info, err := os.Stat(filepath.Join(x.dir, filepath.FromSlash(name)))
		if err != nil || info.IsDir() || LeadsOut(name) {
			return nil
		}
		return []string{name}
	}
	folded := func(name string) []string { return x.folded[scene.FoldName(name)] }
	stem := func(name string) []string {
		name = scene.FoldName(name)
		if whole := x.stems[name]; len(whole) > 0 { // a name without extension
			return whole
		}
		return x.stems[strings.TrimSuffix(name, path.Ext(name))]
	}
	return [...]func(name string) []string{exact, folded, stem}
}

func (x *Index) take(cam *scene.Camera, name string) {
	x.used[name] = true
	cam.Path = filepath.Join(x.dir, filepath.FromSlash(name))
}

// Find gives each camera without a Path its photo. Exact names go first, so that no file is taken for two.
func (x *Index) Find(cams []scene.Camera) {
	for _, lookup := range x.lookups() {
		for i := range cams {
			if cams[i].Path != "" {
				continue
			}
			for _, name := range lookup(cams[i].Name) {
				if !x.used[name] {
					x.take(&cams[i], name)
					break
				}
			}
		}
	}
}

// FindByEnds gives cameras without a Path whose names lead out of the folder, as those of another machine do, the photo
// that the longest end of the name means, if it means one, and no other camera's does, and the photo's name.
func (x *Index) FindByEnds(cams []scene.Camera) {
	means, claims := map[int]string{}, map[string]int{}
	for i := range cams {
		if cams[i].Path != "" || !LeadsOut(cams[i].Name) || len(cams[i].Name) > longestPath {
			continue
		}
		parts := strings.Split(cams[i].Name, "/")
		for k := max(1, len(parts)-mostEnds); k < len(parts) && means[i] == ""; k++ {
			for _, lookup := range x.lookups() {
				if files := lookup(path.Join(parts[k:]...)); len(files) == 1 && means[i] == "" {
					means[i] = files[0]
					claims[files[0]]++
				}
			}
		}
	}
	for i, name := range means {
		if claims[name] == 1 && !x.used[name] {
			x.take(&cams[i], name)
			cams[i].Name = name
		}
	}
}

// FindInOrder gives the cameras the photos in the order of their names, if none was found by its name and there are as
// many: LLFF calls reduced photos image000.png and on.
func (x *Index) FindInOrder(cams []scene.Camera) {
	if len(x.used) > 0 || len(x.Names) != len(cams) {
		return
	}
	for i, name := range x.Names {
		x.take(&cams[i], name)
	}
}

// Unused lists the photos that no camera took.
func (x *Index) Unused() []string {
	var out []string
	for _, name := range x.Names {
		if !x.used[name] {
			out = append(out, name)
		}
	}
	return out
}

// Size reads the size in pixels from the header of a JPEG, PNG or WebP.
func Size(file string) (width, height int, err error) {
	f, _, err := fault.Open(file)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close() // only read from
	r := bufio.NewReader(f)
	head, _ := r.Peek(max(webpHead, 4+m2tsPacket+1)) // a shorter file is recognised by its first bytes
	switch {
	case isJPEG(head):
		width, height, err = jpeg.Size(r)
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
	switch {
	case err != nil:
	case width <= 0 || height <= 0:
		err = fmt.Errorf("the header claims %d x %d pixels", width, height)
	case width > scene.MaxPixels/height:
		err = scene.TooLarge{Width: width, Height: height}
	}
	return width, height, err
}

// SameAspect says whether a photo of w x h can be a scaled copy of one of
// calibrated size cw x ch: the factors of the axes agree within 1 %, or one side is
// within 2 pixels of what the other side's factor gives.
func SameAspect(w, h, cw, ch int) bool {
	x, y := float64(w)/float64(cw), float64(h)/float64(ch)
	return math.Abs(x/y-1) <= 0.01 || math.Abs(float64(w)-float64(cw)*y) <= 2 || math.Abs(float64(h)-float64(ch)*x) <= 2
}
