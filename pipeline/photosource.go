package pipeline

import (
	"context"
	"fmt"

	"vksplat/scene"
)

// Photos gives the pixels of the photos to train on. View i is the photo of the trainer's camera i.
type Photos interface {
	// Photo returns the photo of a view, of its camera's size and with the same pixels every time. It may be called from several goroutines. The caller
	// does not change the pixels. An error of kind fault.ErrData says that the photo has no pixels, now and ever; any other ends the run.
	Photo(ctx context.Context, view int) (scene.Image, error)
}

// photoReleaser is what Photos implement that take their pixels back: the trainer calls Release once for every photo that it got, and does not touch
// the pixels any more.
type photoReleaser interface{ Release(view int) }

// photoPlanner is what Photos implement that read ahead. It changes how soon a photo is there, never which.
type photoPlanner interface {
	// Expect says that these views will be asked for, in this order, after those that were expected before.
	Expect(views []int)
	// Forget takes back what was expected.
	Forget()
}

// Images are photos in memory.
type Images []scene.Image

// Photo returns image view.
func (m Images) Photo(_ context.Context, view int) (scene.Image, error) {
	if view < 0 || view >= len(m) {
		return scene.Image{}, fmt.Errorf("get photo: view %d of %d", view, len(m))
	}
	return m[view], nil
}

// maskWords returns the words of a mask: a bit for each pixel.
func maskWords(pixels int) int { return (pixels + 31) / 32 }

// photoWords returns the 32-bit words that a photo takes at most in RAM, decoded or on its way to the device: RGBA8, then its mask.
func photoWords(width, height int) int { return width*height + maskWords(width*height) }

// photoBytes returns the bytes that the photo of a camera takes at most in RAM. On the device it may take less: see photoLayout.
func photoBytes(c *scene.Camera) int64 { return 4 * int64(photoWords(c.Width, c.Height)) }

// checkPhoto compares a photo with its camera.
func checkPhoto(c *scene.Camera, m scene.Image) error {
	if c.Width != m.Width || c.Height != m.Height || len(m.Pix) != 4*m.Width*m.Height {
		return fmt.Errorf("get photo: %s is %dx%d pixels in %d bytes, its camera %dx%d", c.Name, m.Width, m.Height,
			len(m.Pix), c.Width, c.Height)
	}
	if m.Mask != nil && len(m.Mask) != maskWords(m.Width*m.Height) {
		return fmt.Errorf("get photo: %s has a mask of %d words, %d pixels take %d", c.Name, len(m.Mask),
			m.Width*m.Height, maskWords(m.Width*m.Height))
	}
	return nil
}
