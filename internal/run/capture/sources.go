package capture

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/scene/photo"
)

// fewestPhotos is how many photos a scene needs at least.
const fewestPhotos = 3

// fewest is how many photos the command needs.
func (o *Options) fewest() int {
	if o.More {
		return 1
	}
	return fewestPhotos
}

// source is an input: a video, or photos of a folder or of the command line.
type source struct {
	path   string   // as it was given; a video's file, or the folder of photos
	video  bool     //
	film   *video   // what it holds, of a video
	folder string   // of its photos below images, "" for images itself
	photos []string // relative to path, with the system's slashes
	names  []string // of the same photos below images, with slashes
}

// findSources looks at what the command line names.
func findSources(console *cli.Console, o *Options) ([]*source, error) {
	var list []*source
	loose := &source{} // photos that the command line names one by one
	for _, path := range o.Inputs {
		info, err := os.Stat(path)
		kind := photo.ForeignKindOf(path)
		switch {
		case err != nil:
			return nil, &fault.Error{Op: "open input", Path: path, Err: fault.TrimPath(err), Kind: fault.ErrUsage,
				Hint: "check the spelling; give folders of photos, or videos"}
		case info.IsDir():
			more, err := folderSources(console, path, o)
			if err != nil {
				return nil, err
			}
			list = append(list, more...)
		case kind != nil && kind.Video:
			list = append(list, &source{path: path, video: true})
		case kind != nil || photo.IsPhoto(path):
			loose.photos = append(loose.photos, output.Absolute(path))
		default:
			return nil, fault.Usagef("give folders of photos, or videos", "%s is neither a photo nor a video", path)
		}
	}
	if len(loose.photos) > 0 {
		list = append(list, loose)
	}
	list = onlyOnce(console, list)
	if len(list) == 0 {
		return nil, fault.Usagef("give a folder of photos, or a video", "nothing to make a scene from")
	}
	return list, nameSources(list)
}

// onlyOnce takes photos and videos out that are named more than once, as where a folder and one within it are given.
func onlyOnce(console *cli.Console, list []*source) (left []*source) {
	seen, again := map[string]bool{}, 0
	fresh := func(path string) bool {
		at := output.Resolved(path)
		if seen[at] {
			again++
			return false
		}
		seen[at] = true
		return true
	}
	for _, s := range list {
		if s.video && !fresh(s.path) {
			continue
		}
		var photos []string
		for i, p := range s.photos {
			if fresh(s.file(i)) {
				photos = append(photos, p)
			}
		}
		if s.photos = photos; s.video || len(photos) > 0 {
			left = append(left, s)
		}
	}
	if again > 0 {
		console.Note(fmt.Sprintf("%s named more than once: used once", cli.Count(again, "file")))
	}
	return left
}

// folderSources are the photos of a folder and those below it, or else the videos in it.
func folderSources(console *cli.Console, dir string, o *Options) ([]*source, error) {
	if sameFile(dir, o.Out) {
		if dir = filepath.Join(dir, imagesFolder); !output.IsFolder(dir) {
			return nil, fault.Usagef("choose another folder to write, or move the photos into "+dir,
				"%s: %s is the folder of the photos itself", fault.Named("output"), o.Out)
		}
	}
	if inner := filepath.Join(dir, imagesFolder); isScene(dir) && output.IsFolder(inner) {
		dir = inner // what else is there was made of them
	}
	s := &source{path: dir}
	var videos []*source
	dir = output.Resolved(dir) // a link to a folder is not followed
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(e.Name(), ".") && path != dir
		switch {
		case e.IsDir() && (hidden || e.Name() == masksFolder || path != dir && sameFile(path, o.Out)):
			return filepath.SkipDir
		case e.IsDir() && path != dir && (isScene(path) || output.IsFile(filepath.Join(path, output.WrittenFile))):
			rel, err := filepath.Rel(dir, path)
			console.Note(filepath.Join(s.path, rel) + " is left out: vksplat made it")
			return cmp.Or(err, filepath.SkipDir)
		case e.IsDir() || hidden:
			return nil
		}
		kind := photo.ForeignKindOf(path)
		rel, err := filepath.Rel(dir, path)
		wrong := unread(path, e)
		switch {
		case wrong != nil && (photo.IsPhoto(path) || kind != nil):
			console.Warn(fmt.Sprintf("%s is left out: %v", wording.Printable(filepath.Join(s.path, rel)), wrong))
		case wrong != nil:
		case photo.IsPhoto(path) || kind != nil && !kind.Video:
			s.photos = append(s.photos, rel)
		case kind != nil && kind.Video:
			videos = append(videos, &source{path: path, video: true})
		}
		return err
	})
	switch {
	case err != nil:
		return nil, &fault.Error{Op: "read folder", Path: s.path, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
			Hint: "check the permissions of the folder"}
	case len(s.photos) == 0 && len(videos) == 0:
		return nil, fault.Data("find photos", s.path, "give a folder with photos (JPEG, PNG, WebP, HEIC, TIFF, raw), "+
			"or a video", "there is no photo in the folder")
	case len(s.photos) == 0:
		return videos, nil
	case len(videos) > 0:
		console.Note(fmt.Sprintf("%s holds photos, and %s that are not used: name them to use them, too", s.path,
			cli.Count(len(videos), "video")))
	}
	return []*source{s}, nil
}

// isScene tells whether this command made a folder: the photos there have their first names elsewhere, and the picture
// of the coverage is no photo. Where a task of the farm made it, it has no file of the state.
func isScene(dir string) bool {
	has := func(name string) bool { return output.IsFile(filepath.Join(dir, name)) }
	return has(stateFile) || has(reportFile) && has(coverageFile)
}

// disksFold says that disks of this system take A.jpg and a.jpg for one name, as those of Linux seldom do.
var disksFold = runtime.GOOS == "windows" || runtime.GOOS == "darwin"

// nameSources gives each of several sources a folder of its own below images, and photos their names.
func nameSources(list []*source) error {
	used := map[string]bool{}
	for _, s := range list {
		if len(list) > 1 {
			base := filepath.Base(output.Absolute(cmp.Or(s.path, "photos")))
			name := cmp.Or(strings.TrimSuffix(base, filepath.Ext(base)), "input") // of .photos nothing is left
			s.folder = name
			for n := 2; used[strings.ToLower(s.folder)]; n++ {
				s.folder = fmt.Sprintf("%s_%d", name, n)
			}
			if isOdd(s.folder) {
				return fault.Data("open input", s.path, "rename it", oddName)
			}
			used[strings.ToLower(s.folder)] = true
		}
		slices.Sort(s.photos)
		taken := map[string]bool{}
		for _, p := range s.photos {
			name := filepath.ToSlash(p)
			if filepath.IsAbs(p) {
				name = filepath.Base(p)
			}
			if to := convertedSuffix(name); to != "" {
				name += to
			}
			if s.folder != "" {
				name = s.folder + "/" + name
			}
			key := name
			if disksFold {
				key = strings.ToLower(name)
			}
			if taken[key] {
				return fault.Usagef("name their folders instead", "two photos have the name %s", name)
			}
			taken[key] = true
			s.names = append(s.names, name)
		}
	}
	return nil
}

// inPlace tells whether the source is the scene's own folder of photos.
func (s *source) inPlace(o *Options) bool {
	return !s.video && s.path != "" && (s.folder == "" || o.More) && sameFile(s.path, o.in(imagesFolder, s.folder))
}

func (s *source) file(i int) string {
	if filepath.IsAbs(s.photos[i]) {
		return s.photos[i]
	}
	return filepath.Join(s.path, s.photos[i])
}

// sameFile tells whether two paths lead to one file or folder.
func sameFile(a, b string) bool {
	sa, err := os.Stat(a)
	sb, errB := os.Stat(b)
	return err == nil && errB == nil && os.SameFile(sa, sb)
}

// mark tells a file's content from what it was, as far as size and time do.
func mark(path string) string {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "none"
	} else if err != nil {
		return err.Error()
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// unread is why an entry of a folder cannot be read as a file, nil where it can: to open a pipe would wait for its
// writer.
func unread(path string, e fs.DirEntry) error {
	if e.Type().IsRegular() {
		return nil
	}
	err := fault.Regular(path)
	if to, broken := os.Readlink(path); err != nil && broken == nil {
		err = fmt.Errorf("it is a symbolic link to %s: %w", wording.Printable(to), err)
	}
	return err
}

// oddName is why a name is refused that COLMAP's lists of photos, a name a line, cannot hold, or that COLMAP changes: a
// scene may be read by it later.
const oddName = "COLMAP cannot read names with line breaks, backslashes, or leading or trailing spaces"

// isOdd tells whether that holds for a name.
func isOdd(name string) bool {
	return strings.ContainsAny(name, "\n\r\\") || strings.TrimSpace(name) != name
}
