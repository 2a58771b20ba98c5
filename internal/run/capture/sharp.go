package capture

import (
	"vksplat/scene"
	"vksplat/scene/photo"
)

// greyFrames measures pictures that come as one stream of bytes.
type greyFrames struct {
	w, h     int
	pix      []byte // of the picture that comes in
	sharp    []float64
	measured func(n int)
}

func (g *greyFrames) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := min(cap(g.pix)-len(g.pix), len(rest))
		g.pix, rest = append(g.pix, rest[:n]...), rest[n:]
		if len(g.pix) == cap(g.pix) {
			g.sharp = append(g.sharp, photo.Sharpness(g.pix, g.w, g.h))
			g.pix = g.pix[:0]
			g.measured(len(g.sharp))
		}
	}
	return len(p), nil
}

// sharpest gives the numbers of the frames to take: in each bucket the sharpest, the first of equals.
func sharpest(sharp []float64, how sampling) (take []int) {
	last := -1
	for i, s := range sharp {
		b := how.bucket(i)
		if b != last {
			take, last = append(take, i), b
		} else if s > sharp[take[len(take)-1]] {
			take[len(take)-1] = i
		}
	}
	return take
}

type look struct {
	sharp  float64 // 0: not known
	bright float64 // mean, 0 to 1
}

// lookAt measures a photo at the size of frames.
func lookAt(path string) (look, error) {
	img, err := decodeFile(path)
	if err != nil {
		return look{}, err
	}
	small := photo.Fit(img, smallerSide)
	l := lookOf(&small)
	return l, nil
}

func lookOf(img *scene.Image) look {
	if min(img.Width, img.Height) < 3 {
		return look{}
	}
	grey, sum := make([]byte, img.Width*img.Height), 0
	for i := range grey {
		p := img.Pix[4*i:]
		grey[i] = byte((299*int(p[0]) + 587*int(p[1]) + 114*int(p[2])) / 1000)
		sum += int(grey[i])
	}
	return look{sharp: photo.Sharpness(grey, img.Width, img.Height), bright: float64(sum) / float64(255*len(grey))}
}
