package photo

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/pixelpool"
	"vksplat/scene"
)

// ErrMasked is the cause of a photo's error when no pixel of it counts.
var ErrMasked = errors.New("no pixel of the photo counts")

// mask collects the pixels that do not count.
type mask struct {
	Words  []uint32 // as in Image.Mask
	pixels int
}

func NewMask(width, height int) *mask { return &mask{pixels: width * height} }

// Drop leaves pixel i out.
func (m *mask) Drop(i int) {
	if m.Words == nil {
		m.Words = make([]uint32, (m.pixels+31)/32)
		for w := range m.Words {
			m.Words[w] = ^uint32(0)
		}
		if rest := m.pixels % 32; rest > 0 {
			m.Words[len(m.Words)-1] = 1<<rest - 1
		}
	}
	m.Words[i/32] &^= 1 << (i % 32)
}

// Counts says whether pixel i of an image with such a mask counts.
func Counts(mask []uint32, i int) bool {
	return mask == nil || mask[i/32]>>(i%32)&1 != 0
}

// maskFile is a mask as its file has it: a bit a pixel, in rows without padding.
type maskFile struct {
	width, height int
	Words         []uint32
}

const OpMask = "decode mask"

// ReadMask decodes a mask: pixels count that are white, at least half of full brightness with alpha taken into account,
// or with inverted the others.
func ReadMask(file string, inverted bool) (*maskFile, error) {
	data, err := readPhoto(OpMask, file)
	if err != nil {
		return nil, err
	}
	defer pixelpool.FreeFile(data)
	img, err := DecodeStored(data)
	if err != nil {
		return nil, &fault.Error{Op: OpMask, Path: file, Err: err,
			Hint: "Export the mask again as PNG, white where the photo counts, or remove it."}
	}
	m := &maskFile{width: img.Width, height: img.Height, Words: make([]uint32, (img.Width*img.Height+31)/32)}
	for i := range img.Width * img.Height {
		p := img.Pix[4*i : 4*i+4 : 4*i+4]
		luma := 299*uint32(p[0]) + 587*uint32(p[1]) + 114*uint32(p[2]) // ITU-R BT.601, times 1000
		if white := luma*uint32(p[3]) >= 128*255*1000; white != inverted {
			m.Words[i/32] |= 1 << (i % 32)
		}
	}
	pixelpool.Free(img.Pix)
	return m, nil
}

// at says whether a photo counts at a place given as fractions of its width and height.
func (m *maskFile) at(x, y float64) bool {
	column := min(max(int(x*float64(m.width)), 0), m.width-1)
	row := min(max(int(y*float64(m.height)), 0), m.height-1)
	return Counts(m.Words, row*m.width+column)
}

// dropUnseen drops pixels of a picture that shows the whole photo: those that the mask m leaves out, which may be nil,
// and those where the camera's lens shows nothing.
func dropUnseen(img *scene.Image, c *scene.Camera, m *maskFile) {
	out := NewMask(img.Width, img.Height)
	for y := range img.Height {
		for x := range img.Width {
			if !c.Shows(x, y) || m != nil &&
				!m.at((float64(x)+0.5)/float64(img.Width), (float64(y)+0.5)/float64(img.Height)) {
				out.Drop(y*img.Width + x)
			}
		}
	}
	img.Mask = out.Words
}

// readMaskOf decodes the camera's mask; nil if it has none.
func readMaskOf(c *scene.Camera) (*maskFile, error) {
	if c.Mask == "" {
		return nil, nil
	}
	m, err := ReadMask(c.Mask, c.MaskInverted)
	if err == nil && c.MaskGrow > 0 {
		m.grow(c.MaskGrow)
	}
	return m, err
}

// grow leaves out all pixels, too, that are at most n columns and n rows from one that is left out: along rows first,
// then along columns.
func (m *maskFile) grow(n int) {
	out := make([]bool, max(m.width, m.height))
	for y := range m.height {
		m.growLine(y*m.width, 1, n, out[:m.width])
	}
	for x := range m.width {
		m.growLine(x, m.width, n, out[:m.height])
	}
}

// growLine grows what is left out of a line of len(out) pixels. out is scratch.
func (m *maskFile) growLine(first, stride, n int, out []bool) {
	for k := range out {
		out[k] = !Counts(m.Words, first+k*stride)
	}
	ahead, behind := n+1, n+1 // pixels since one that was left out, from both ends
	for k := range out {
		back := len(out) - 1 - k
		if ahead++; out[k] {
			ahead = 0
		}
		if behind++; out[back] {
			behind = 0
		}
		if at := first + k*stride; ahead <= n {
			m.Words[at/32] &^= 1 << (at % 32)
		}
		if at := first + back*stride; behind <= n {
			m.Words[at/32] &^= 1 << (at % 32)
		}
	}
}

func picture(c *scene.Camera, photo scene.Image, file *maskFile) (out scene.Image, err error) {
	if c.Lens != nil {
		if out, err = undistort(photo, c, file); err != nil {
			return scene.Image{}, &fault.Error{Op: opDecode, Path: c.Path, Err: err}
		}
	} else {
		out = resize(photo, c.Width, c.Height)
		if file != nil || c.Distortion != nil && c.Distortion.Blind {
			dropUnseen(&out, c, file)
		}
	}
	if Blank(out.Mask) {
		return scene.Image{}, &fault.Error{Op: opDecode, Path: c.Path, Err: ErrMasked,
			Hint: "Take the photo out of the capture, or correct its mask: white counts, unless masks are inverted."}
	}
	return out, nil
}

// Blank says whether a mask leaves nothing.
func Blank(mask []uint32) bool {
	for _, w := range mask {
		if w != 0 {
			return false
		}
	}
	return mask != nil
}

// masksBeside gives the folder of masks that belongs to a folder of photos, "" if there is none.
func masksBeside(images string) string {
	dir := filepath.Join(filepath.Dir(filepath.Clean(images)), "masks")
	if !atomicfile.IsDir(dir) {
		return ""
	}
	return dir
}

// AttachMasks gives cameras the masks found in dir, a folder below the capture's or an absolute one; "" means the
// folder masks beside that of the photos, if there is one. The mask of a/b.jpg is a/b.jpg.png, a/b.mask.png or a/b.png
// below dir, in any case, as PNG or JPEG. inverted makes black count. Cameras that have a mask keep it. A warning says
// how many photos have masks, and which have none.
func AttachMasks(c *scene.Capture, dir string, inverted bool) error {
	asked := dir != ""
	var err error
	if asked {
		dir, err = Below(c.Root, dir, "find masks", "masks")
	} else if dir = masksBeside(c.Images); dir == "" {
		return nil
	}
	if err != nil {
		return err
	}
	index, err := IndexDir(dir)
	if err != nil {
		return err
	}
	found, missing := index.masks(c.Cameras, inverted)
	if found == 0 {
		if asked {
			return &fault.Error{Op: "find masks", Path: dir, Err: errors.New("there is no mask of any photo"),
				Hint: "name the masks after the photos: the mask of a/b.jpg is a/b.png, a/b.jpg.png or a/b.mask.png " +
					"below this folder"}
		}
		c.Warn("no-masks", fmt.Sprintf("no file in %s is named after a photo, so no masks are used", dir), nil)
		return nil
	}
	text := fmt.Sprintf("all %d photos have masks in %s", found, dir)
	if len(missing) > 0 {
		text = fmt.Sprintf("%d of %d photos have masks in %s; the others count whole", found, found+len(missing), dir)
	}
	c.Warn("masks", text, missing)
	return nil
}

func (x *Index) masks(cams []scene.Camera, inverted bool) (found int, missing []string) {
	last := ""
	for i := range cams {
		cam := &cams[i]
		name := cam.Name
		if cam.Photo != "" {
			name = cam.Photo
		}
		if cam.Mask == "" {
			if cam.Mask = x.maskOf(name, cam.Path); cam.Mask != "" {
				cam.MaskInverted = inverted
			}
		}
		if name == last { // another face of the same panorama
			continue
		}
		last = name
		if cam.Mask != "" {
			found++
		} else {
			missing = append(missing, name)
		}
	}
	return found, missing
}

// maskOf finds the mask of a photo by name; the photo itself is none.
func (x *Index) maskOf(name, photo string) string {
	folded := scene.FoldName(name)
	stem := strings.TrimSuffix(folded, path.Ext(folded))
	for _, want := range []string{folded, stem + ".mask", stem} {
		for _, candidate := range x.stems[want] {
			if file := filepath.Join(x.dir, filepath.FromSlash(candidate)); file != photo {
				return file
			}
		}
	}
	return ""
}

// readPhoto reads a file that is to be decoded, into memory for pixelpool.FreeFile.
func readPhoto(op, file string) ([]byte, error) {
	err := fault.Regular(file)
	var data []byte
	if !errors.Is(err, fault.ErrNotRegular) {
		data, err = pixelpool.ReadFile(file)
	}
	if err == nil {
		return data, nil
	}
	e := &fault.Error{Op: op, Path: file, Err: fault.TrimPath(err), Hint: HintPhoto}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fault.ErrNotRegular) {
		e.Kind = fault.ErrTryAgain
	}
	return nil, e
}
