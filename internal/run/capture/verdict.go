package capture

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/internal/wording"
)

// What the verdict calls bad.
const (
	fewRegistered = 0.5  // share of the photos that have a camera
	smallAngle    = 2.0  // degrees under which the median point is seen
	largeError    = 2.0  // pixels
	darkBelow     = 0.03 // mean brightness
	blurredBelow  = 0.25 // sharpness over the median of photos with a camera
	mostNamed     = 8    // dropped photos that are named
	mostLooked    = 60   // photos with a camera whose sharpness is measured, to compare with
)

// Dropped is a photo without a camera, and why as far as that can be known.
type Dropped struct {
	Photo string `json:"photo"`
	Why   string `json:"why"`
}

// judge looks at what the mapper made.
func (r *running) judge(list []*component, taken *component) *Report {
	v := r.newReport()
	v.Taken, v.Registered = taken, taken.Photos
	var n notes
	folder := componentsFolder
	if r.o.More {
		folder = extendedFolder
	}
	_ = strictjson.ReadFile(r.o.in(folder, notesFile), &n) // COLMAP writes none
	v.Earth, v.Advice = n.Earth, append(v.Advice, n.Apart...)
	in := map[string]*component{}
	for _, c := range list {
		if c != taken {
			v.Others = append(v.Others, c)
		}
		for _, name := range c.names {
			if in[name] == nil || c == taken {
				in[name] = c
			}
		}
	}
	slices.SortFunc(v.Others, func(a, b *component) int { return cmp.Compare(a.Number, b.Number) })
	var lost []string
	for _, name := range r.photos {
		if c := in[name]; c == nil {
			lost = append(lost, name)
		} else if c != taken {
			v.Dropped = append(v.Dropped, Dropped{name, fmt.Sprintf("in component %d", c.Number)})
		}
	}
	v.Dropped = append(v.Dropped, r.reasons(lost, taken, n.Why)...)
	slices.SortFunc(v.Dropped, func(a, b Dropped) int { return strings.Compare(a.Photo, b.Photo) })
	if r.mapper.cubed() { // many faces show nothing but sky
		v.advise(panoramasOf(r.photos), panoramasOf(taken.names), "panoramas")
	} else {
		v.advise(v.Photos, v.Registered, "photos")
	}
	return v
}

// reasons says why photos have no camera: they are dark or blurred, or else match too little, in the mapper's words if
// there are any.
func (r *running) reasons(lost []string, taken *component, known map[string]string) (list []Dropped) {
	if len(lost) == 0 {
		return nil
	}
	var sharp []float64
	for _, l := range r.looksOf(taken.names, mostLooked) {
		sharp = append(sharp, l.sharp)
	}
	slices.Sort(sharp)
	middle := 0.0
	if len(sharp) > 0 {
		middle = sharp[len(sharp)/2]
	}
	for i, l := range r.looksOf(lost, len(lost)) {
		why := cmp.Or(known[lost[i]], "too few matches with the others")
		switch {
		case l.bright < darkBelow && l.sharp > 0:
			why = "dark"
		case l.sharp < blurredBelow*middle:
			why = fmt.Sprintf("blurred: %.0f %% as sharp as the others", 100*l.sharp/middle)
		}
		list = append(list, Dropped{lost[i], why})
	}
	return list
}

// looksOf measures photos, or so many of them, evenly spread. What cannot be read counts as black.
func (b *base) looksOf(names []string, most int) []look {
	n := min(len(names), most)
	looks := make([]look, n)
	parallel.For(n, func(i int) {
		if b.ctx.Err() == nil {
			looks[i], _ = lookAt(b.o.in(imagesFolder, filepath.FromSlash(names[i*len(names)/n])))
		}
	})
	return looks
}

// advise finds what is bad, and what helps. Photos were taken from places, of which so many are found; they are called
// photos or panoramas.
func (v *Report) advise(places, found int, called string) {
	if float64(found) < fewRegistered*float64(places) {
		v.Advice = append(v.Advice, fmt.Sprintf("only %d of %d %s have a camera: take more photos between the "+
			"others, so that neighbours overlap by two thirds", found, places, called))
	}
	if len(v.Others) > 0 {
		v.Advice = append(v.Advice, fmt.Sprintf("the photos fall into %d components with too little overlap: add "+
			"photos that show parts of both; %s N uses another component", len(v.Others)+1, fault.Setting("model")))
	}
	if v.Taken.Angle < smallAngle {
		v.Advice = append(v.Advice, fmt.Sprintf("the median viewing angle is only %.1f degrees: the photos were taken "+
			"almost from one place, which shows little depth; walk instead of turning on the spot", v.Taken.Angle))
	}
	if v.Taken.Error > largeError {
		v.Advice = append(v.Advice, fmt.Sprintf("the mean reprojection error is %.1f pixels: the lens model may be "+
			"wrong (%s), or things moved", v.Taken.Error, fault.Setting("camera-model")))
	}
}

func (v *Report) print(console *cli.Console, o *Options) {
	share := 100 * float64(v.Taken.Photos) / float64(max(v.Photos, 1))
	console.Printf("\ncameras:  %d of %s (%.0f %%)\n", v.Taken.Photos, cli.Count(v.Photos, "photo"), share)
	if v.Added != nil {
		console.Printf("added:    %d of %s\n", v.Added.Registered, cli.Count(v.Added.Photos, "photo"))
	}
	console.Printf("points:   %d, reprojection error %.2f pixels, median viewing angle %.1f degrees\n", v.Taken.Points,
		v.Taken.Error, v.Taken.Angle)
	if e := v.Earth; e != nil {
		console.Printf("gps:      metres, x east, y north, z up of %.6f, %.6f; %s off by %.1f m\n", e.Latitude,
			e.Longitude, cli.Count(e.Photos, "photo"), e.Off)
	}
	if len(v.Others) > 0 {
		console.Printf("taken:    component %d, of %d\n", v.Taken.Number, len(v.Others)+1)
	}
	for _, c := range v.Others {
		console.Printf("other:    component %d: %s, %s, %.2f pixels\n", c.Number, cli.Count(c.Photos, "photo"),
			cli.Count(c.Points, "point"), c.Error)
	}
	console.Printf("%s%s", droppedText("left out:", v.LeftOut), droppedText("dropped:", v.Dropped))
	for _, text := range v.Advice {
		console.Warn(text)
	}
	if output.IsFile(o.in(coverageFile)) {
		console.Printf("picture:  %s\n", o.in(coverageFile))
	}
	if o.Trained {
		console.Printf("\n")
		return
	}
	console.Printf("\nReady: %s\n", fault.Command("train "+cli.Quoted(o.Out)+" -m OUT"))
}

// droppedText names photos, or as many as are read, a line each.
func droppedText(what string, list []Dropped) (text string) {
	for i, d := range list {
		if i == mostNamed && len(list) > mostNamed+1 {
			return text + fmt.Sprintf("%-9s %d more\n", what, len(list)-i)
		}
		text += fmt.Sprintf("%-9s %s: %s\n", what, wording.Printable(d.Photo), d.Why)
	}
	return text
}

// Missing says, a line each, why the search failed, which photos have no camera and why, and where to take more; ""
// where all have one.
func (v *Report) Missing() (text string) {
	if v.Error != "" {
		text = "failed:   " + v.Error + "\n"
	}
	text += droppedText("left out:", v.LeftOut) + droppedText("dropped:", v.Dropped)
	for _, advice := range v.Advice {
		text += "advice:   " + advice + "\n"
	}
	return text
}
