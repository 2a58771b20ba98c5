package capture

import (
	"cmp"
	"fmt"

	"vksplat/internal/fault"
	"vksplat/scene/photo"
)

// cameraPlan says which photos share a camera, and which model it has with COLMAP.
type cameraPlan struct {
	share string // CamerasOne, CamerasMany or CamerasFolder
	model string
	why   string // in words, for the first line of the stage

	lenses int // that EXIF names
}

func (m *mapper) planCameras() (cameraPlan, error) {
	p := cameraPlan{share: m.o.Cameras, model: m.o.CameraModel, why: "as asked for"}
	if m.cubed() {
		return cameraPlan{share: CamerasOne, model: "PINHOLE", why: "faces of panoramas"}, nil
	}
	videos := 0
	for _, s := range m.sources {
		if s.video {
			videos++
		}
	}
	kinds, err := m.kindsOfPhotos()
	if err != nil {
		return p, err
	}
	p.lenses = kinds.lenses
	switch {
	case p.share == CamerasOne && kinds.sizes > 1:
		return p, fault.Usagef("leave out "+fault.Setting("cameras")+", or give folders of their own to photos of one size",
			"%s one: the photos have %d sizes", fault.Named("cameras"), kinds.sizes)
	case p.share != Auto:
	case m.o.Rig:
		p.share, p.why = CamerasFolder, "a rig has a folder for each camera"
	case videos > 0 && len(m.sources) == 1:
		p.share, p.why = CamerasOne, "a video has one camera"
	case videos == len(m.sources):
		p.share, p.why = CamerasFolder, "each video has a camera"
	case kinds.sizes == 1 && kinds.lenses <= 1:
		p.share, p.why = CamerasOne, "all photos have one size and one lens"
	default:
		p.share, p.why = CamerasMany, fmt.Sprintf("the photos have %d sizes and lenses", kinds.all)
	}
	if p.model == Auto {
		// The eight numbers of OPENCV need many photos that agree.
		if p.model = "OPENCV"; p.share == CamerasMany {
			p.model = "SIMPLE_RADIAL"
		}
	}
	return p, nil
}

// photoKinds counts what the photos were taken with.
type photoKinds struct{ sizes, lenses, all int }

// kindsOfPhotos looks at sizes and EXIF of all photos.
func (m *mapper) kindsOfPhotos() (photoKinds, error) {
	sizes, lenses, all := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range m.photos {
		path := m.o.in(imagesFolder, name)
		w, h, err := photo.Size(path)
		if err != nil {
			return photoKinds{}, &fault.Error{Op: "read photo", Path: cmp.Or(m.files[name], path), Err: err,
				Hint: "remove or replace the file, then run the same command again"}
		}
		size := fmt.Sprintf("%dx%d", w, h)
		lens := photo.TakenWith(path)
		sizes[size], all[size+lens] = true, true
		if lens != "" {
			lenses[lens] = true
		}
	}
	return photoKinds{len(sizes), len(lenses), len(all)}, nil
}
