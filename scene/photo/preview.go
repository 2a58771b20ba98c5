package photo

import (
	"fmt"
	"image"
	"io/fs"
	"os"

	"vksplat/scene"
)

// Preview returns a small JPEG of the picture in a file: PreviewSide pixels along the longer side at most, and at most
// PreviewBytes bytes.
func Preview(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	size, _, err := image.DecodeConfig(f)
	if err != nil {
		return nil, err
	}
	if size.Width < 1 || size.Height < 1 {
		return nil, fmt.Errorf("%w: a picture of %d x %d pixels", fs.ErrInvalid, size.Width, size.Height)
	}
	reduce := min(1, float64(PreviewSide)/float64(max(size.Width, size.Height)))
	c := scene.Camera{Path: file, Width: max(1, int(reduce*float64(size.Width))),
		Height: max(1, int(reduce*float64(size.Height)))}
	img, err := Decode(c) // reduces in the same go
	if err != nil {
		return nil, err
	}
	return SmallJPEG(Over(img, [3]float32{}), PreviewSide, PreviewBytes)
}
