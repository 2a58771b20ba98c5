package ref

// twin: look

// Look is what a picture shows: the model's colours, or else.
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

// Look changes what project wrote for a picture that shows something else than colours.
func (p *Projection[T]) Look(look Look, depths []T) {
	for i := range p.Splats {
		if look == LookColor || !p.Visible(i) {
			continue
		}
		s := &p.Splats[i]
		switch look {
		case LookDepth:
			s.Color = [3]T{depths[i], 1, 0}
		case LookCenters:
			reach := sqrt(2*log(255*T(1)) + ExtentSlack)
			s.Opacity, s.Conic = 1, [3]T{1 / (dotSigma * dotSigma), 0, 1 / (dotSigma * dotSigma)}
			p.Extents[i] = [3]T{reach * dotSigma, reach * dotSigma, reach * dotSigma}
		case LookEllipsoids:
			c := s.Conic
			det := c[0]*c[2] - c[1]*c[1]
			scale := (2*log(255*T(opaque)) + ExtentSlack) / (ellipsoidSigmas * ellipsoidSigmas)
			s.Opacity, s.Conic = opaque, [3]T{scale * c[0], scale * c[1], scale * c[2]}
			p.Extents[i] = [3]T{ellipsoidSigmas * sqrt(c[2]/det), ellipsoidSigmas * sqrt(c[0]/det), ellipsoidSigmas * sqrt(1/c[0])}
		}
	}
}
