package pipeline

import (
	"errors"

	"vksplat/shaders/layout"
	"vksplat/vk"
)

// Vignetting is how a camera darkens its photos away from the centre, for red, green and blue: the centre x, y, in
// units of the longer side from the middle of the picture, and a1, a2, a3. A colour is multiplied by 1 + a1 q + a2 q² +
// a3 q³, or 0 where that is less, q being the squared distance from the centre (PPISP, arXiv 2601.18336).
type Vignetting [3][5]float32

// Apply makes of a rendering [height*width*3] what the camera would have taken.
func (v *Vignetting) Apply(render []float32, width, height int) {
	longer := float32(max(width, height))
	for i, a := range v {
		for p := range width * height {
			x := (float32(p%width)+0.5-0.5*float32(width))/longer - a[0]
			y := (float32(p/width)+0.5-0.5*float32(height))/longer - a[1]
			q := x*x + y*y
			render[3*p+i] *= max(0, 1+q*(a[2]+q*(a[3]+q*a[4])))
		}
	}
}

// Vignettings returns what has been learnt of each camera's vignetting: the sum over its photos. nil: it is not learnt.
func (t *Trainer) Vignettings() ([]Vignetting, error) {
	x := t.e.appearances
	if !t.cfg.Vignetting {
		return nil, nil
	}
	rows, err := x.download()
	if err != nil {
		return nil, err
	}
	n := 1
	for i := range rows {
		n = max(n, int(rows[i].Camera)+1)
	}
	list := make([]Vignetting, n)
	for i := range rows {
		v := &list[int(rows[i].Camera)]
		for k, own := range rows[i].Own[layout.Vignetting:] {
			v[k/5][k%5] += own
		}
	}
	return list, nil
}

// download returns the whole table. Nothing may be in flight.
func (x *appearances) download() (rows []layout.Appearance, err error) {
	to, err := vk.Make[layout.Appearance](x.dev, vk.Readback, x.table.N(), "appearances")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.dev.Free(to.View)) }()
	r := vk.NewRecorder(x.dev)
	r.Copy(to.View, x.table.View)
	if err := runOnce(x.dev, r, "read appearances"); err != nil {
		return nil, err
	}
	return append(rows, vk.Host(to)...), nil
}
