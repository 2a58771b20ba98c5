package inspect

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/photo"
)

const opPairs = "pair pictures"

// Pairs are pictures of one folder and what they are to be compared with, without poses.
type Pairs struct {
	Renders  []scene.Camera // sorted by name; Decode gives the pictures
	Photos   []scene.Camera // those of the same index, with the same names and sizes
	Unpaired []string       // photos of which there is no rendering
	Warnings []scene.Warning
}

// FindPairs finds for each picture below the folder renders the one below photos that has the same name, or the same
// but for the extension. masks, unless it is "", is a folder of masks of the photos, as in scene.LoadOptions.
func FindPairs(renders, photos, masks string, inverted bool) (*Pairs, error) {
	made, err := indexFolder(renders)
	if err != nil {
		return nil, err
	}
	taken, err := indexFolder(photos)
	if err != nil {
		return nil, err
	}
	slices.Sort(made.Names)
	p := &Pairs{Renders: make([]scene.Camera, len(made.Names)), Photos: make([]scene.Camera, len(made.Names))}
	for i, name := range made.Names {
		p.Renders[i] = scene.Camera{Name: name, Path: filepath.Join(renders, filepath.FromSlash(name))}
		p.Photos[i] = scene.Camera{Name: name}
	}
	taken.Find(p.Photos)
	if err := p.check(renders, photos); err != nil {
		return nil, err
	}
	p.Unpaired = taken.Unused()
	c := &scene.Capture{Root: ".", Images: photos, Cameras: p.Photos}
	if masks == "" {
		return p, nil
	}
	if masks, err = filepath.Abs(masks); err != nil {
		return nil, &fault.Error{Op: opPairs, Path: masks, Err: err}
	}
	if err := photo.AttachMasks(c, masks, inverted); err != nil {
		return nil, err
	}
	for _, w := range c.Warnings {
		if w.Count > 0 { // photos without a mask
			p.Warnings = append(p.Warnings, w)
		}
	}
	return p, p.checkMasks(masks)
}

// checkMasks wants masks of the photos' shape, and reports those of another size, which are scaled.
func (p *Pairs) checkMasks(dir string) error {
	var f maskFindings
	var scaled []string
	for i := range p.Photos {
		cam := &p.Photos[i]
		if cam.Mask == "" || !f.compare(cam) {
			continue
		}
		if w, h, err := photo.Size(cam.Mask); err == nil && (w != cam.Width || h != cam.Height) {
			scaled = append(scaled, cam.Name)
		}
	}
	if len(f.broken) > 0 {
		return f.cause
	}
	if wrong := slices.Concat(f.stretched, f.turned); len(wrong) > 0 {
		return fault.Data(opPairs, dir, "make masks of the photos' size", "%s",
			scene.Warning{Count: len(wrong), Names: scene.FirstNames(wrong),
				Text: fmt.Sprintf("%d of %d masks have another shape than their photos (%s)", len(wrong), f.photos,
					f.example)})
	}
	if len(scaled) > 0 {
		p.Warnings = append(p.Warnings,
			scene.Warning{Code: "scaled-masks", Count: len(scaled), Names: scene.FirstNames(scaled),
				Text: fmt.Sprintf("%d of %d masks have another size than their photos and are scaled to it",
					len(scaled),
					f.photos)})
	}
	return nil
}

// indexFolder lists the pictures of a folder, of which there must be one.
func indexFolder(dir string) (*photo.Index, error) {
	if !atomicfile.IsDir(dir) {
		return nil, &fault.Error{Op: opPairs, Path: dir, Err: errors.New("no such folder"),
			Hint: "check the spelling of the path"}
	}
	x, err := photo.IndexDir(dir)
	if err == nil && len(x.Names) == 0 {
		err = &fault.Error{Op: opPairs, Path: dir, Err: errors.New("there is no picture in the folder"),
			Hint: "name a folder with PNG, JPEG or WebP files"}
	}
	return x, err
}

// check wants a photo of the same size for each rendering, and takes in the sizes.
func (p *Pairs) check(renders, photos string) error {
	var missing []string
	for i := range p.Renders {
		if p.Photos[i].Path == "" {
			missing = append(missing, p.Renders[i].Name)
		}
	}
	if len(missing) > 0 {
		return fault.Data(opPairs, photos,
			fmt.Sprintf("pictures of both folders have the same names, as in %s and %s", path.Base(missing[0]),
				strings.TrimSuffix(path.Base(missing[0]), path.Ext(missing[0]))+".jpg"), "%s",
			scene.Warning{Count: len(missing), Names: scene.FirstNames(missing),
				Text: fmt.Sprintf("%d of %d pictures of %s cannot be found", len(missing), len(p.Renders),
					wording.Printable(renders))})
	}
	sizes := make([][4]int, len(p.Renders))
	errs := make([]error, len(p.Renders))
	parallel.For(len(p.Renders), func(i int) {
		for k, cam := range []*scene.Camera{&p.Renders[i], &p.Photos[i]} {
			w, h, err := photo.Size(cam.Path)
			if err != nil && errs[i] == nil {
				errs[i] = &fault.Error{Op: opPairs, Path: cam.Path, Err: err,
					Hint: "export or copy it again as PNG, JPEG or WebP"}
			}
			cam.Width, cam.Height = w, h
			sizes[i][2*k], sizes[i][2*k+1] = w, h
		}
	})
	for i, err := range errs {
		if err != nil {
			return err
		}
		if s := sizes[i]; s[0] != s[2] || s[1] != s[3] {
			return fault.Data(opPairs, p.Renders[i].Path,
				"compare pictures of one size: scale the photos as they were for the renderings",
				"it has %d x %d pixels, and %s has %d x %d", s[0], s[1], wording.Printable(p.Photos[i].Path), s[2],
				s[3])
		}
	}
	return nil
}
