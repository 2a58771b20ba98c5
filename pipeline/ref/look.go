package ref

// twin: look

// Look is the kind of picture: the model's colours, or a diagnostic one.
type Look uint32

// The looks, as in shaders/shared/const.glsl.
const (
	LookColor Look = iota
	LookDepth
	LookCenters
	LookEllipsoids
)

const (
	dotSigma        = 0.7 // px
	ellipsoidSigmas = 1.5
	opaque          = 1e30
)

// reach is how far from the mean alpha falls to the threshold, in standard deviations.
func reach[T Real](opacity T) T { return sqrt(2*log(255*opacity) + ExtentSlack) }

// Look changes what project wrote for a picture that shows something else than colours.
func (p *Projection[T]) Look(look Look, depths []T) {
	for i := range p.Splats {
		if look == LookColor || !p.Visible(i) {
			continue
		}
		s := &p.Splats[i]
		switch look {
		case LookDepth:
			s.Color = [3]T{depths[i], 1, T(depths[i] * depths[i])}
		case LookCenters:
			s.Opacity, s.Conic = 1, [3]T{1 / (dotSigma * dotSigma), 0, 1 / (dotSigma * dotSigma)}
			e := reach(T(1)) * dotSigma
			p.Extents[i] = [3]T{e, e, e}
		case LookEllipsoids:
			shrink, scale := ellipsoidSigmas/reach(s.Opacity), reach(T(opaque))/ellipsoidSigmas
			for k := range 3 {
				p.Extents[i][k] *= shrink
				s.Conic[k] *= scale * scale
			}
			s.Opacity = opaque
		}
	}
}
