package capture

import (
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Names of stages.
const (
	stagePhotos   = "photos"
	stageFrames   = "frames"
	stageFaces    = "faces"
	stageMasks    = "masks"
	stageGiven    = "given"
	stageFeatures = "features"
	stageMatches  = "matches"
	stageMapping  = "mapping"
	stageModel    = "model"
)

// takePhotos brings the photos of all folders below images: as a second name of the same file where the disk can do
// that, else as a copy.
func (r *running) takePhotos() error {
	var key, outputs, all []string
	var from, to []string
	for _, s := range r.sources {
		for i, name := range s.names {
			target := filepath.Join(r.taken(), filepath.FromSlash(name))
			key = append(key, name, mark(s.file(i)))
			r.photos = append(r.photos, name)
			if conversionOf(s.photos[i]) == nil {
				r.files[name] = s.file(i)
			}
			if s.inPlace(r.o) && sameFile(s.file(i), r.o.in(target)) {
				continue
			}
			from, to, all = append(from, s.file(i)), append(to, r.o.in(target)), append(all, target)
			if !sameFile(s.file(i), r.o.in(target)) { // another name of the user's file is replaced without harm
				outputs = append(outputs, target)
			}
		}
	}
	if len(key) == 0 {
		return nil
	}
	do := func() (string, error) {
		converted := 0
		for i := range from {
			r.show.update(i, len(from), "%d of %d", i, len(from))
			made, err := r.takePhoto(from[i], to[i])
			if err != nil {
				return "", err
			}
			if made {
				converted++
			}
		}
		if n := len(r.several); n > 0 {
			r.console.Note(fmt.Sprintf("%s with several pictures, as %s: the first is used", cli.Count(n, "file"),
				r.several[0]))
		}
		done := cli.Count(len(r.photos), "photo")
		if converted > 0 {
			done += fmt.Sprintf(", %d of them converted", converted)
		}
		return done, nil
	}
	return r.stages.do(stage{name: stagePhotos, key: text(key), outputs: outputs, changes: all, adds: true, do: do})
}

// takePhoto brings one photo to its place, unless it is there.
func (b *base) takePhoto(from, to string) (converted bool, err error) {
	if b.ctx.Err() != nil {
		return false, fault.ErrInterrupted
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return false, output.FolderError(b.o.Out, err)
	}
	if conversionOf(from) != nil && !isReadable(from) {
		if isReadable(to) {
			return true, nil // of a run that was stopped
		}
		return true, b.convertPhoto(from, to)
	}
	if sameFile(from, to) {
		return false, nil
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, output.FolderError(b.o.Out, err)
	}
	return false, linkOrCopy(from, to)
}

// linkOrCopy gives a file a second name, or makes a copy where the disk cannot do that.
func linkOrCopy(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err == nil && os.Link(real, to) == nil {
		return nil
	}
	return output.CopyWhole(from, to)
}

// takeMasks writes a PNG for the mask of each photo, with the name that COLMAP looks for. Training finds the same.
func (r *running) takeMasks() error {
	if r.o.Masks == "" {
		return r.dropMasks()
	}
	var found, names []string
	var key []string
	for _, name := range r.photos {
		if file := maskOf(r.o.Masks, name); file != "" {
			found, names = append(found, file), append(names, name)
			key = append(key, name, mark(file))
		}
	}
	if len(found) == 0 {
		return fault.Data("find masks", r.o.Masks, "the mask of a.jpg is a.png, a.jpg.png or a.mask.png below that "+
			"folder",
			"there is no mask of any photo")
	}
	if sameFile(r.o.Masks, r.o.in(masksFolder)) {
		return fault.Usagef("keep the masks in another folder: they are copied with the names that COLMAP looks for",
			"%s: %s is the folder to write", fault.Named("masks"), r.o.Masks)
	}
	if n := len(r.photos) - len(found); n > 0 {
		r.console.Warn(fmt.Sprintf("%d of %d photos have no mask in %s", n, len(r.photos), r.o.Masks))
	}
	outputs := []string{masksFolder}
	if r.o.More { // others are there
		outputs = nil
		for _, name := range names {
			outputs = append(outputs, filepath.Join(masksFolder, filepath.FromSlash(name)+".png"))
		}
	}
	return r.stages.do(stage{name: stageMasks, key: text(key), outputs: outputs, do: func() (string, error) {
		for i, file := range found {
			r.show.update(i, len(found), "%d of %d", i, len(found))
			if err := r.takeMask(file, r.o.in(masksFolder, filepath.FromSlash(names[i]))+".png"); err != nil {
				return "", err
			}
		}
		return cli.Count(len(found), "mask"), nil
	}})
}

// dropMasks removes the masks of an earlier call that had some: training would use them.
func (r *running) dropMasks() error {
	i := r.stages.state.at(stageMasks)
	if i < 0 || r.o.More {
		return nil
	}
	masks := stage{name: stageMasks, outputs: []string{masksFolder}}
	if err := r.stages.clear(masks, !r.stages.state.Stages[i].Done, false); err != nil {
		return err
	}
	r.stages.state.forget(stageMasks)
	return r.stages.state.save()
}

func (b *base) takeMask(from, to string) error {
	if b.ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return output.FolderError(b.o.Out, err)
	}
	if strings.EqualFold(filepath.Ext(from), ".png") {
		return output.CopyWhole(from, to)
	}
	img, err := decodeFile(from)
	if err != nil {
		return err
	}
	return atomicfile.Write(to, func(w io.Writer) error {
		return photo.EncodePNG(w, &image.NRGBA{Pix: img.Pix, Stride: 4 * img.Width,
			Rect: image.Rect(0, 0, img.Width, img.Height)})
	})
}

func decodeFile(path string) (scene.Image, error) {
	data, err := os.ReadFile(path)
	if err == nil {
		var img scene.Image
		if img, err = photo.DecodeStored(data); err == nil {
			return img, nil
		}
	}
	return scene.Image{}, &fault.Error{Op: "decode photo", Path: path, Err: fault.TrimPath(err), Hint: photo.HintPhoto}
}

// maskOf finds the mask of a photo, "" for none.
func maskOf(dir, name string) string {
	at := filepath.Join(dir, filepath.FromSlash(name))
	bare := strings.TrimSuffix(at, filepath.Ext(at))
	for _, file := range []string{at + ".png", bare + ".mask.png", bare + ".png", at, bare + ".jpg", bare + ".jpeg"} {
		if output.IsFile(file) {
			return file
		}
	}
	return ""
}
