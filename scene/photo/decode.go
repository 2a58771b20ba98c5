package photo

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"image/png"
	"io/fs"
	"slices"

	"vksplat/internal/fault"
	"vksplat/internal/pixelpool"
	"vksplat/scene"
	"vksplat/scene/jpeg"
)

// Limits on what a photo may claim to hold before memory is spent on it.
const (
	maxPixelsPerByte = 1 << 14 // deflate packs at most 1032 bytes into one, each of them at most 8 pixels
)

// What to do about photos that cannot be used.
const (
	hintDecode = "Export the photo again as JPEG or PNG."
	HintPhoto  = "Check that the photo exists and can be read."
)

const opDecode = "decode photo"

// Decode reads the camera's photo, a JPEG, PNG or WebP, and returns it at the camera's Width and Height: RGBA, 8 bits,
// straight alpha (255 where the file has none), reduced by an area filter where the file is larger, and in the same go
// undistorted where the camera has a lens. Mask says which pixels count: those that have a source, and that the
// camera's mask leaves. A photo without any has an error that wraps ErrMasked. The orientation tag of EXIF is ignored:
// calibrations are of the pixels as stored. Errors are of type *fault.Error with the photo's path: of kind
// fault.ErrTryAgain if the file is there and cannot be read, of kind fault.ErrData otherwise.
func Decode(c scene.Camera) (scene.Image, error) {
	images, errs := DecodeViews([]scene.Camera{c})
	return images[0], errs[0]
}

// DecodeViews gives for each of cams what Decode gives. They are all of one photo, as the faces of a panorama are,
// which is decoded once, and so is its mask.
func DecodeViews(cams []scene.Camera) ([]scene.Image, []error) {
	images, errs := make([]scene.Image, len(cams)), make([]error, len(cams))
	var photo scene.Image
	var file *maskFile
	var failed error
	for i := range cams {
		c := &cams[i]
		if errs[i] = decodable(c); errs[i] != nil {
			continue
		}
		if photo.Pix == nil && failed == nil {
			if photo, failed = storedPhoto(c); failed == nil {
				file, failed = readMaskOf(c)
			}
		}
		if errs[i] = failed; failed == nil {
			images[i], errs[i] = picture(c, photo, file)
		}
	}
	if len(photo.Pix) > 0 && !slices.ContainsFunc(images,
		func(m scene.Image) bool { return len(m.Pix) > 0 && &m.Pix[0] == &photo.Pix[0] }) {
		pixelpool.Free(photo.Pix)
	}
	return images, errs
}

// decodable refuses a camera without a photo, or of an absurd size.
func decodable(c *scene.Camera) error {
	if c.Path == "" {
		return &fault.Error{Op: opDecode, Path: c.Name, Err: fs.ErrNotExist, Hint: HintPhoto}
	}
	if c.Width <= 0 || c.Height <= 0 || c.Width > scene.MaxPixels/c.Height {
		return &fault.Error{Op: opDecode, Path: c.Path,
			Err: fmt.Errorf("the camera wants %d x %d pixels", c.Width, c.Height)}
	}
	return nil
}

func storedPhoto(c *scene.Camera) (scene.Image, error) {
	data, err := readPhoto(opDecode, c.Path)
	if err != nil {
		return scene.Image{}, err
	}
	defer pixelpool.FreeFile(data)
	img, err := DecodeStored(data)
	if err != nil {
		hint := cmp.Or(HintOf(c.Path, err), hintDecode)
		if errors.Is(err, jpeg.ErrEndsEarly) || endsEarly(data, data, int64(len(data))) {
			err, hint = errors.New("the file ends early"), "The copy is incomplete; copy the photo again."
		}
		return scene.Image{}, &fault.Error{Op: opDecode, Path: c.Path, Err: err, Hint: hint}
	}
	return img, nil
}

// DecodeStored decodes what the first bytes say the data is, whatever its name.
func DecodeStored(data []byte) (scene.Image, error) {
	switch {
	case isJPEG(data):
		return jpeg.Decode(data)
	case isPNG(data):
		return decodePNG(data)
	case isWebP(data):
		return decodeWebP(data)
	}
	return scene.Image{}, notPhoto(data)
}

func decodePNG(data []byte) (scene.Image, error) {
	header, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return scene.Image{}, err
	}
	if err := scene.Plausible(header.Width, header.Height, maxPixelsPerByte, len(data)); err != nil {
		return scene.Image{}, err
	}
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return scene.Image{}, err
	}
	return fromImage(img), nil
}

// Recycle takes back the pixels of a decoded photo for those that are decoded next. Nobody may use them any more.
func Recycle(img scene.Image) { pixelpool.Free(img.Pix) }
