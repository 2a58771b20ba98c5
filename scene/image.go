package scene

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"slices"
)

// Limits on what a photo may claim to hold before memory is spent on it.
const (
	maxPixels        = 1 << 28
	maxPixelsPerByte = 1 << 14 // deflate packs at most 1032 bytes into one, each of them at most 8 pixels
)

// What to do about photos that cannot be used.
const (
	hintDecode = "Export the photo again as JPEG or PNG."
	hintPhoto  = "Check that the photo exists and can be read."
)

const opDecode = "decode photo"

// Decode reads the camera's photo, a JPEG, PNG or WebP, and returns it at the camera's Width and Height: RGBA, 8 bits, straight alpha (255 where the file has
// none), reduced by an area filter where the file is larger, and in the same go undistorted where the camera has a lens. Mask says which pixels count: those
// that have a source, and that the camera's mask leaves. A photo without any has an error that wraps ErrMasked. The orientation tag of EXIF is ignored:
// calibrations are of the pixels as stored. Errors are
// of type *Error with the photo's path: of kind ErrTryAgain if the file is there and cannot be read, of kind ErrData otherwise.
func (c Camera) Decode() (Image, error) {
	images, errs := DecodeViews([]Camera{c})
	return images[0], errs[0]
}

// DecodeViews gives for each of cams what Decode gives. They are all of one photo, as the faces of a panorama are, which is decoded once, and so is its mask.
func DecodeViews(cams []Camera) ([]Image, []error) {
	images, errs := make([]Image, len(cams)), make([]error, len(cams))
	var photo Image
	var file *maskFile
	var failed error
	for i := range cams {
		c := &cams[i]
		if errs[i] = c.decodable(); errs[i] != nil {
			continue
		}
		if photo.Pix == nil && failed == nil {
			if photo, failed = c.storedPhoto(); failed == nil {
				file, failed = c.maskFile()
			}
		}
		if errs[i] = failed; failed == nil {
			images[i], errs[i] = c.picture(photo, file)
		}
	}
	if len(photo.Pix) > 0 && !slices.ContainsFunc(images, func(m Image) bool { return len(m.Pix) > 0 && &m.Pix[0] == &photo.Pix[0] }) {
		freePixels(photo.Pix)
	}
	return images, errs
}

// decodable refuses a camera without a photo, or of an absurd size.
func (c *Camera) decodable() error {
	if c.Path == "" {
		return &Error{Op: opDecode, Path: c.Name, Err: fs.ErrNotExist, Hint: hintPhoto}
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > maxPixels/c.Height {
		return &Error{Op: opDecode, Path: c.Path, Err: fmt.Errorf("the camera wants %d x %d pixels", c.Width, c.Height)}
	}
	return nil
}

// storedPhoto gives the camera's photo as its file has it.
func (c *Camera) storedPhoto() (Image, error) {
	data, err := readPhoto(opDecode, c.Path)
	if err != nil {
		return Image{}, err
	}
	defer freeFile(data)
	img, err := decodePhoto(data)
	if err != nil {
		hint := cmp.Or(foreignHint(c.Path, err), hintDecode)
		if errors.Is(err, errEndsEarly) || endsEarly(data, data, int64(len(data))) {
			err, hint = errors.New("the file ends early"), "The copy is incomplete; copy the photo again."
		}
		return Image{}, &Error{Op: opDecode, Path: c.Path, Err: err, Hint: hint}
	}
	return img, nil
}

// decodePhoto decodes what the first bytes say the data is, whatever its name.
func decodePhoto(data []byte) (Image, error) {
	switch {
	case len(data) == 0:
		return Image{}, errors.New("the file is empty")
	case isJPEG(data):
		return decodeJPEG(data)
	case isPNG(data):
		return decodePNG(data)
	case isWebP(data):
		return decodeWebP(data)
	}
	return Image{}, notPhoto(data)
}

// plausible refuses sizes that no file of that many bytes can hold, before memory is spent on them.
func plausible(width, height, pixelsPerByte, size int) error {
	if width <= 0 || height <= 0 || width > maxPixels/height || width*height/pixelsPerByte > size {
		return fmt.Errorf("the header claims %d x %d pixels in a file of %d bytes", width, height, size)
	}
	return nil
}

func decodePNG(data []byte) (Image, error) {
	header, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return Image{}, err
	}
	if err := plausible(header.Width, header.Height, maxPixelsPerByte, len(data)); err != nil {
		return Image{}, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return Image{}, err
	}
	return fromImage(img), nil
}
