package capture

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// Panorama is the camera model of equirectangular panoramas, twice as wide as high. This program knows it, and COLMAP
// from version 4.2 on. Older versions get the six faces of a cube around each panorama, as photos of a pinhole camera
// that is known.
const Panorama = "EQUIRECTANGULAR"

var knowsPanoramas = [2]int{4, 2}

const (
	panoramasFolder = "panoramas" // of those that become faces
	faceQuality     = 95          // of the faces' JPEGs
)

// cubed tells whether panoramas become faces.
func (m *mapper) cubed() bool {
	return m.o.CameraModel == Panorama && m.colmap != nil && !m.colmap.from(knowsPanoramas)
}

// taken is the folder that photos and frames are brought to.
func (r *running) taken() string {
	if r.mapper.cubed() {
		return panoramasFolder
	}
	return imagesFolder
}

// checkPanoramas refuses photos and videos that are no panoramas where they are said to be, as far as their sizes are
// known.
func (r *running) checkPanoramas() error {
	if r.o.CameraModel == Auto {
		r.suspectPanoramas()
	}
	if r.o.CameraModel != Panorama {
		return nil
	}
	check := func(file string, w, h int) error {
		if w == 2*h {
			return nil
		}
		return fault.Usagef("leave out "+fault.Setting("camera-model")+", or export panoramas of 360 by 180 degrees",
			"%s %s: %s has %dx%d pixels, and a panorama is twice as wide as high", fault.Named("camera-model"),
			Panorama, file, w, h)
	}
	for _, s := range r.sources {
		if s.inPlace(r.o) && r.mapper.cubed() {
			return fault.Usagef("choose another folder to write", "%s: COLMAP %s needs the faces of panoramas, which "+
				"would be written to %s", fault.Named("output"), r.mapper.colmap.version, s.path)
		}
		if s.video {
			if err := check(s.path, s.film.width, s.film.height); err != nil {
				return err
			}
		}
		for i := range s.photos {
			if w, h, err := photo.Size(s.file(i)); err == nil { // others are converted first
				if err := check(s.file(i), w, h); err != nil {
					return err
				}
			}
		}
	}
	if r.o.Masks != "" && r.mapper.cubed() {
		return fault.Usagef("leave out "+fault.Setting("masks")+", or install COLMAP 4.2 or newer",
			"%s: COLMAP %s needs the faces of panoramas, which have no masks", fault.Named("masks"),
			r.mapper.colmap.version)
	}
	return nil
}

// suspectPanoramas takes photos and videos that all say so for panoramas. Where they have no more than their shape, it
// says how panoramas are given.
func (r *running) suspectPanoramas() {
	seen, said := false, true
	for _, s := range r.sources {
		for i := range s.photos {
			if w, h, err := photo.Size(s.file(i)); err != nil || w != 2*h {
				return
			}
			seen, said = true, said && photo.IsPanorama(s.file(i))
		}
		if s.video {
			if s.film.width != 2*s.film.height {
				return
			}
			seen, said = true, said && s.film.sphere
		}
	}
	switch {
	case seen && said:
		r.o.CameraModel = Panorama
		r.console.Note("the files say that they are equirectangular panoramas, which sets " +
			fault.Setting("camera-model") + " " + Panorama)
	case seen:
		r.console.Note("all photos are twice as wide as high: if they show 360 by 180 degrees, give " +
			fault.Setting("camera-model") + " " + Panorama)
	}
}

var faceName = regexp.MustCompile(`_(back|down|front|left|right|up)\.jpg$`)

// takeFaces cuts panoramas into faces, which take their place among the photos.
func (r *running) takeFaces() error {
	if !r.mapper.cubed() {
		return nil
	}
	panoramas, views := r.photos, [][]scene.Camera{}
	r.photos = nil
	key, used := []string{}, map[string]bool{}
	for _, name := range panoramas {
		file := r.o.in(panoramasFolder, filepath.FromSlash(name))
		faces, err := facesOf(file, name)
		if err != nil {
			return err
		}
		if used[faces[0].Name] {
			return fault.Usagef("rename one of them", "two panoramas have the name %s, apart from the extension",
				strings.TrimSuffix(name, path.Ext(name)))
		}
		used[faces[0].Name] = true
		views, key = append(views, faces), append(key, name, mark(file))
		if r.side == 0 {
			r.side = faces[0].Width
		}
		if faces[0].Width != r.side {
			return fault.Usagef("give panoramas of one size, or install COLMAP 4.2 or newer",
				"%s has another size than %s", name, panoramas[0])
		}
		for _, face := range faces {
			r.photos = append(r.photos, face.Name)
		}
	}
	do := func() (string, error) {
		for i, faces := range views {
			r.show.update(i, len(views), "%d of %d", i, len(views))
			if err := r.writeFaces(faces); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s of %s", cli.Count(len(r.photos), "face"), cli.Count(len(views), "panorama")), nil
	}
	outputs := []string{imagesFolder}
	return r.stages.do(stage{name: stageFaces, key: text(key), outputs: outputs, makes: faceName, do: do})
}

// facesOf gives the cameras of a panorama's faces, named as their files are below images.
func facesOf(file, name string) ([]scene.Camera, error) {
	w, h, err := photo.Size(file)
	if err == nil && w != 2*h {
		err = fmt.Errorf("it has %dx%d pixels, and a panorama is twice as wide as high", w, h)
	}
	var faces []scene.Camera
	if err == nil {
		k := scene.Calibration{Model: scene.LensEquirectangular, Width: w, Height: h,
			Params: []float64{float64(w), float64(h)}}
		faces, err = k.Views(scene.Camera{Name: name, Path: file, R: [9]float64{1, 0, 0, 0, 1, 0, 0, 0, 1}}, w, h, 1)
	}
	if err != nil {
		return nil, &fault.Error{Op: "read panorama", Path: file, Err: err,
			Hint: "give panoramas of 360 by 180 degrees"}
	}
	bare := strings.TrimSuffix(name, path.Ext(name))
	for i := range faces {
		which := strings.TrimSuffix(path.Base(faces[i].Name), path.Ext(faces[i].Name))
		faces[i].Name = bare + "_" + which + ".jpg"
	}
	return faces, nil
}

// panoramasOf counts the panoramas that faces are of.
func panoramasOf(faces []string) int {
	of := map[string]bool{}
	for _, name := range faces {
		of[name[:max(strings.LastIndex(name, "_"), 0)]] = true
	}
	return len(of)
}

func (b *base) writeFaces(faces []scene.Camera) error {
	if b.ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	images, errs := photo.DecodeViews(faces)
	for i, img := range images {
		if errs[i] != nil {
			return errs[i]
		}
		data, err := photo.JPEG(img, faceQuality)
		photo.Recycle(img)
		if err != nil {
			return err
		}
		to := b.o.in(imagesFolder, filepath.FromSlash(faces[i].Name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return output.FolderError(b.o.Out, err)
		}
		if err := atomicfile.WriteText(to, data); err != nil {
			return err
		}
	}
	return nil
}

// faceCamera is the camera of all faces, as COLMAP takes its numbers: two focal lengths and the middle.
func (m *mapper) faceCamera() string {
	half := float64(m.side) / 2
	return fmt.Sprintf("%g,%g,%g,%g", half, half, half, half)
}
