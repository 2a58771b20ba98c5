package calibrate

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"math"
	"slices"
)

// Sizes in the picture, in its units.
const (
	panelWidth, panelHeight = 460, 307
	panelGap, barsHeight    = 20, 120
	magnified               = 100 // by how much arrows are longer than what they show
)

// WritePicture draws, as SVG, by how much projections are off over the photos' area, as given and as calibrated, and
// the median of each photo. Photos that stand apart are red.
func (r *Result) WritePicture(w io.Writer) error {
	b := bufio.NewWriter(w)
	panels := []*Residuals{r.Before}
	titles := []string{"as given"}
	if r.After != nil {
		panels, titles = append(panels, r.After), append(titles, "calibrated")
	}
	width := len(panels)*(panelWidth+panelGap) + panelGap
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">
<rect width="100%%" height="100%%" fill="#fff"/>
`, width, panelHeight+barsHeight+100)
	for i, p := range panels {
		fmt.Fprintf(b, `<g transform="translate(%d 30)">`, panelGap+i*(panelWidth+panelGap))
		p.field(b, titles[i])
		b.WriteString("</g>\n")
	}
	fmt.Fprintf(b, `<g transform="translate(%d %d)">`, panelGap, panelHeight+70)
	r.bars(b, float64(width-2*panelGap))
	b.WriteString("</g>\n</svg>\n")
	return b.Flush()
}

// field draws arrows from where points were seen to where they are projected.
func (r *Residuals) field(b io.Writer, title string) {
	fmt.Fprintf(b, `<text y="-8">%s: mean %.3f px, median %.3f px; arrows are %d times as long</text>
<rect width="%d" height="%d" fill="none" stroke="#999"/>
`, title, r.Mean, r.Median, magnified, panelWidth, panelHeight)
	for row, cells := range r.Field {
		for column, c := range cells {
			if c.Count == 0 {
				continue
			}
			x := (float64(column) + 0.5) * panelWidth / fieldColumns
			y := (float64(row) + 0.5) * panelHeight / fieldRows
			fmt.Fprintf(b, `<path d="M%.1f %.1fl%.1f %.1f" stroke="#06c"/><circle cx="%.1f" cy="%.1f" r="1.5"/>`+"\n",
				x, y, magnified*c.X, magnified*c.Y, x, y)
		}
	}
}

// bars draws the median residual of each photo, by name.
func (r *Result) bars(b io.Writer, width float64) {
	photos := slices.Clone(r.Before.Photos)
	after := map[string]float64{}
	if r.After != nil {
		for _, p := range r.After.Photos {
			after[p.Name] = p.Median
		}
	}
	slices.SortFunc(photos, byName)
	most := 0.5
	for _, p := range photos {
		most = max(most, min(p.Median, mostCounted))
	}
	fmt.Fprintf(b, `<text y="-8">median of each photo, by name; the highest bar is %.2f px; dark: calibrated, red: the photo `+
		`stands apart</text>`+"\n", most)
	step := width / float64(max(1, len(photos)))
	for i, p := range photos {
		bar := func(value float64, fill string) {
			h := barsHeight * min(value, most) / most
			fmt.Fprintf(b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%.1f" fill="%s"><title>%s: %.3f px, %d points`+
				`</title></rect>`+"\n", float64(i)*step, barsHeight-h, math.Max(0.8*step, 0.5), h, fill,
				html.EscapeString(p.Name), value, p.Observations)
		}
		fill := "#9bd"
		if slices.Contains(r.Apart, p.Name) {
			fill = "#c22"
		}
		bar(p.Median, fill)
		if value, known := after[p.Name]; known && value > 0 {
			bar(value, "#036")
		}
	}
}
