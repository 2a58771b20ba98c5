package calibrate

import (
	"math"
	"strings"

	"vksplat/internal/geom"
)

// Residuals say how far observations are from where the cameras project their points.
type Residuals struct {
	Observations int              `json:"observations"` // of training photos
	Mean         float64          `json:"mean"`         // of these, pixels of the calibration, each at most 20
	Median       float64          `json:"median"`       // likewise
	Photos       []PhotoResiduals `json:"photos"`       // in the order of the model
	Field        [][]Cell         `json:"-"`            // over the photos' area: rows of columns
}

// PhotoResiduals are those of a photo.
type PhotoResiduals struct {
	Name         string  `json:"name"`
	Observations int     `json:"observations"`
	Median       float64 `json:"median"` // 0 without observations
	HeldOut      bool    `json:"held_out,omitempty"`
}

// Cell is a part of the photos' area: the mean of what the projections are off there, in pixels.
type Cell struct {
	X, Y  float64
	Count int
}

const (
	// mostCounted bounds the distance that a wrong match counts with, in pixels.
	mostCounted = 20
	// The field has so many columns and rows. Only residuals below fieldPixels count in it: others are wrong matches.
	fieldColumns, fieldRows, fieldPixels = 18, 12, 3
)

// residuals measures all observations.
func (n *network) residuals() (*Residuals, error) {
	list, err := n.problem().Residuals()
	if err != nil {
		return nil, err
	}
	r := &Residuals{Photos: make([]PhotoResiduals, len(n.photos)), Field: make([][]Cell, fieldRows)}
	for i := range r.Field {
		r.Field[i] = make([]Cell, fieldColumns)
	}
	own := make([][]float64, len(n.photos))
	var all []float64
	for i, o := range n.seen {
		d := min(math.Hypot(list[i][0], list[i][1]), mostCounted)
		own[o.Pose] = append(own[o.Pose], d)
		if p := &n.photos[o.Pose]; !p.HeldOut {
			all = append(all, d)
			r.Mean += d
			k := &n.lenses[p.Lens]
			if c := r.cell(o.X/float64(k.Width), o.Y/float64(k.Height)); c != nil && d < fieldPixels {
				c.X, c.Y, c.Count = c.X+list[i][0], c.Y+list[i][1], c.Count+1
			}
		}
	}
	for _, row := range r.Field {
		for i := range row {
			c := &row[i]
			c.X, c.Y = c.X/float64(max(1, c.Count)), c.Y/float64(max(1, c.Count))
		}
	}
	for i, p := range n.photos {
		r.Photos[i] = PhotoResiduals{Name: p.Name, Observations: len(own[i]), HeldOut: p.HeldOut}
		if len(own[i]) > 0 {
			r.Photos[i].Median = geom.Quantile(own[i], 0.5)
		}
	}
	if r.Observations = len(all); len(all) > 0 {
		r.Mean /= float64(len(all))
		r.Median = geom.Quantile(all, 0.5)
	}
	return r, nil
}

// cell is where shares of width and height are; nil outside.
func (r *Residuals) cell(x, y float64) *Cell {
	if !(x >= 0 && x < 1 && y >= 0 && y < 1) {
		return nil
	}
	return &r.Field[int(y*fieldRows)][int(x*fieldColumns)]
}

func byName(a, b PhotoResiduals) int { return strings.Compare(a.Name, b.Name) }
