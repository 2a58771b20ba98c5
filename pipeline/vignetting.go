package pipeline

import "vksplat/shaders/layout"

const channelTerms = (layout.AppearanceNumbers - layout.Vignetting) / 3

// Vignetting is how a camera darkens its photos away from the centre: for red, green and blue where that is, in longer
// sides of the photo from its middle, and three coefficients. See shared/appearance.glsl.
type Vignetting [3][channelTerms]float64

// Vignettings returns what is learnt of the cameras of the photos, by their numbers; nil if nothing is.
func (t *Trainer) Vignettings() ([]Vignetting, error) {
	if !t.run.cfg.Vignetting {
		return nil, nil
	}
	if err := t.queue.wait(); err != nil {
		return nil, err
	}
	table, err := t.shards.first.e.setup.appearances.download()
	if err != nil {
		return nil, err
	}
	n := t.run.cameras
	for i := range table { // a resumed run has the numbers of the run that began, whatever photos say now
		n = max(n, int(table[i].Camera)+1)
	}
	list := make([]Vignetting, n)
	for i := range table { // a camera's is the sum over its photos
		v := &list[int(table[i].Camera)]
		for k, x := range table[i].Own[layout.Vignetting:] {
			v[k/channelTerms][k%channelTerms] += float64(x)
		}
	}
	return list, nil
}

// Darken makes a picture, [height][width] RGB, what the camera would have taken of it.
func (v *Vignetting) Darken(picture []float32, width, height int) {
	longer := float64(max(width, height))
	for p := range width * height {
		for ch, a := range v {
			x := (float64(p%width)+0.5-0.5*float64(width))/longer - a[0]
			y := (float64(p/width)+0.5-0.5*float64(height))/longer - a[1]
			q := x*x + y*y
			picture[3*p+ch] *= float32(max(0, 1+q*(a[2]+q*(a[3]+q*a[4]))))
		}
	}
}
