package photos

import (
	"context"
	"fmt"

	"vksplat/scene"
)

// Source gives the pixels of the photos to train on. View i is the photo of the trainer's camera i.
type Source interface {
	// Photo returns the photo of a view, of its camera's size and with the same pixels every time. It may be called
	// from several goroutines. The caller does not change the pixels. An error of kind fault.ErrData says that the
	// photo has no pixels, now and ever; any other ends the run.
	Photo(ctx context.Context, view int) (scene.Image, error)
}

// Releaser is what a Source implements that takes its pixels back: the trainer calls Release once for every photo that
// it got, and does not touch the pixels any more.
type Releaser interface{ Release(view int) }

// Planner is what a Source implements that reads ahead. It changes how soon a photo is there, never which.
type Planner interface {
	// Expect says that these views will be asked for, in this order, after those that were expected before.
	Expect(views []int)
	// Forget takes back what was expected.
	Forget()
}

type Images []scene.Image

func (m Images) Photo(_ context.Context, view int) (scene.Image, error) {
	if view < 0 || view >= len(m) {
		return scene.Image{}, fmt.Errorf("get photo: view %d of %d", view, len(m))
	}
	return m[view], nil
}

// MaskWords returns the words of a mask: a bit for each pixel.
func MaskWords(pixels int) int { return (pixels + 31) / 32 }

// words returns the 32-bit words that a photo takes at most in RAM, decoded or on its way to the device: RGBA8, then
// its mask.
func words(width, height int) int { return width*height + MaskWords(width*height) }

// Bytes returns the bytes that the photo of a camera takes at most in RAM. On the device it may take less: see Layout.
func Bytes(c *scene.Camera) int64 { return 4 * int64(words(c.Width, c.Height)) }

func Check(c *scene.Camera, m scene.Image) error {
	if c.Width != m.Width || c.Height != m.Height || len(m.Pix) != 4*m.Width*m.Height {
		return fmt.Errorf("get photo: %s is %dx%d pixels in %d bytes, its camera %dx%d", c.Name, m.Width,
			m.Height, len(m.Pix), c.Width, c.Height)
	}
	if m.Mask != nil && len(m.Mask) != MaskWords(m.Width*m.Height) {
		return fmt.Errorf("get photo: %s has a mask of %d words, %d pixels take %d", c.Name, len(m.Mask),
			m.Width*m.Height, MaskWords(m.Width*m.Height))
	}
	return nil
}

// Totals returns the bytes of all photos and of the largest, in RAM.
func Totals(cams []scene.Camera) (total, most int64) {
	for i := range cams {
		b := Bytes(&cams[i])
		total, most = total+b, max(most, b)
	}
	return total, most
}
