package evaluate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"vksplat/internal/child"
	"vksplat/internal/cli"
	"vksplat/internal/run/captured"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/results"
)

// Tables are Markdown: they read well as they are, and papers' and repositories' pages take them.

// MarkdownTable collects rows and prints them with columns that line up. The first column is text, the others are
// numbers.
type MarkdownTable struct {
	Rows [][]string // the first is the head
}

func (t *MarkdownTable) Add(cells ...string) {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(strings.ReplaceAll(wording.Printable(c), "\\", "\\\\"), "|", "\\|")
	}
	t.Rows = append(t.Rows, cells)
}

func (t *MarkdownTable) String() string {
	width := make([]int, len(t.Rows[0]))
	for _, row := range t.Rows {
		for i, c := range row {
			width[i] = max(width[i], len([]rune(c)), 4)
		}
	}
	var b strings.Builder
	line := func(row []string) {
		for i, c := range row {
			pad := strings.Repeat(" ", width[i]-len([]rune(c)))
			if i == 0 {
				b.WriteString("| " + c + pad)
			} else {
				b.WriteString(" | " + pad + c)
			}
		}
		b.WriteString(" |\n")
	}
	line(t.Rows[0])
	for i, w := range width {
		if i == 0 {
			b.WriteString("|" + strings.Repeat("-", w+2))
		} else {
			b.WriteString("|" + strings.Repeat("-", w+1) + ":")
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows[1:] {
		line(row)
	}
	return b.String()
}

// ScoreText prints a score: what was not measured is n/a, never a number.
func ScoreText(s results.Score) string {
	switch {
	case !s.Known:
		return "n/a"
	case strings.Contains(strings.ToUpper(s.Name), "PSNR"):
		return fmt.Sprintf("%.3f", s.Value)
	}
	return fmt.Sprintf("%.4f", s.Value)
}

// lessIsBetter says of which scores the smallest is the best.
func lessIsBetter(name string) bool { return strings.Contains(strings.ToUpper(name), "LPIPS") }

const nearestLegend = "nearest_degrees: angle to the closest training direction. nearest_distance: distance to the " +
	"closest training camera, in median distances of the training cameras from their mean."

func printResult(console *cli.Console, j *Job) {
	r := &j.Result
	means := r.Means()
	head := []string{"view"}
	last := []string{fmt.Sprintf("**mean of %d**", len(r.Views))}
	for _, m := range means {
		if m.Known {
			head = append(head, fmt.Sprintf("%s (%s)", m.Name, r.Protocol))
			last = append(last, "**"+ScoreText(m)+"**")
		}
	}
	legend := j.scorer.Legend()
	if r.Nearest != nil {
		head, last = append(head, results.NearestDegrees, results.NearestDistance), append(last, "", "")
		legend += " " + nearestLegend
	}
	t := &MarkdownTable{}
	t.Add(head...)
	for _, v := range r.Views {
		row := []string{v.Name}
		for k, s := range v.Scores {
			if means[k].Known {
				row = append(row, ScoreText(s))
			}
		}
		if n, known := r.Nearest[v.Name]; known {
			row = append(row, fmt.Sprintf("%.1f", n.Degrees), fmt.Sprintf("%.3f", n.Distance))
		}
		t.Add(row...)
	}
	t.Add(last...)
	console.Printf("### %s, %s: %s of %s\n\n%s\n", j.name, r.Method, cli.Count(len(r.Views), "photo"),
		captured.Resolution(j.cams), t)
	console.Sayf("%s\n%s", legend, j.below())
	child.Report(child.Event{Event: child.EventTable, Text: fmt.Sprintf("\n%s\n%s\n%s", t, legend, j.below())})
	if j.folder != "" {
		console.Printf("\nscores: %s\n", j.folder)
	}
	console.Printf("\n")
}

// printComparison prints the means of several models side by side, the best of each in bold, and then every view's
// PSNR. None is the best of models that were not measured alike: scores on other photos are no measure of each other.
func printComparison(console *cli.Console, jobs []*Job) {
	head := []string{"mean"}
	for _, j := range jobs {
		head = append(head, fmt.Sprintf("%s, %s", j.name, j.Result.Method))
	}
	views, same := sharedViews(jobs)
	best, bestOfView := bestInBold, bestInBold
	differs := differing(jobs)
	if len(differs) > 0 {
		best, bestOfView = scoreTexts, scoreTexts
	} else if !same {
		best = scoreTexts
	}
	t := &MarkdownTable{}
	t.Add(head...)
	for _, name := range scoreNames(jobs) {
		row := make([]results.Score, len(jobs))
		for i, j := range jobs {
			row[i] = Named(j.Result.Means(), name)
		}
		t.Add(append([]string{fmt.Sprintf("%s (%s)", name, jobs[0].Result.Protocol)}, best(row)...)...)
	}
	legend := jobs[0].scorer.Legend(t)
	console.Printf("%s\n", t)
	if !same {
		differs = append(differs, "on other photos")
	}
	if len(differs) > 0 {
		console.Warn("the models were measured " + strings.Join(differs, " and ") +
			": their scores are not comparable, and none is marked as the best")
	}
	if len(views) > 0 {
		t = &MarkdownTable{}
		head[0] = fmt.Sprintf("%s (%s) of view", PlainNames[0], jobs[0].Result.Protocol)
		t.Add(head...)
		for _, view := range views {
			row := make([]results.Score, len(jobs))
			for i, j := range jobs {
				at := slices.IndexFunc(j.Result.Views, func(v results.ViewScores) bool { return v.Name == view })
				row[i] = Named(j.Result.Views[at].Scores, PlainNames[0])
			}
			t.Add(append([]string{view}, bestOfView(row)...)...)
		}
		console.Printf("%s\n", t)
	}
	console.Sayf("%s\n", legend)
	for _, j := range jobs {
		console.Sayf("%s", j.below())
	}
}

// differing lists in what the views differ that the jobs have in common.
func differing(jobs []*Job) (what []string) {
	first := map[string]*scene.Camera{}
	note := func(text string, differ bool) {
		if differ && !slices.Contains(what, text) {
			what = append(what, text)
		}
	}
	for _, j := range jobs {
		note("over other backgrounds", j.capture != nil && j.capture.Synthetic &&
			j.o.Config.Background != jobs[0].o.Config.Background) // their photos are transparent
		for i := range j.cams {
			c := &j.cams[i]
			of := first[c.Name]
			if of == nil {
				first[c.Name] = c
				continue
			}
			resized := c.Width != of.Width || c.Height != of.Height
			note("on photos of other sizes", resized)
			note("on other photos of the same names", !resized && !sameContent(c.Path, of.Path))
			note("with other masks", c.MaskInverted != of.MaskInverted || c.MaskGrow != of.MaskGrow ||
				!sameContent(c.Mask, of.Mask))
		}
	}
	return what
}

// sameContent reports whether two files are the same, or copies.
func sameContent(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.ReadFile(a)
	other, err2 := os.ReadFile(b)
	return errors.Join(err, err2) == nil && bytes.Equal(one, other)
}

// scoreNames lists in order the scores that one of the jobs has.
func scoreNames(jobs []*Job) (names []string) {
	for _, j := range jobs {
		for _, s := range j.Result.Means() {
			if s.Known && !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Named returns the score of a name, which is not known where there is none.
func Named(list []results.Score, name string) results.Score {
	if i := slices.IndexFunc(list, func(s results.Score) bool { return s.Name == name }); i >= 0 {
		return list[i]
	}
	return results.Score{Name: name}
}

func bestInBold(row []results.Score) []string {
	cells, best := scoreTexts(row), -1
	for i, s := range row {
		if s.Known && (best < 0 || s.Value != row[best].Value && s.Value < row[best].Value == lessIsBetter(s.Name)) {
			best = i
		}
	}
	if best < 0 {
		return cells
	}
	top := cells[best]
	for i := range cells { // all that read the same
		if cells[i] == top {
			cells[i] = "**" + top + "**"
		}
	}
	return cells
}

// scoreTexts are the cells of a row without a best one.
func scoreTexts(row []results.Score) []string {
	cells := make([]string, len(row))
	for i, s := range row {
		cells[i] = ScoreText(s)
	}
	return cells
}

// sharedViews returns the views that all jobs have, and whether none has others.
func sharedViews(jobs []*Job) (views []string, same bool) {
	times := map[string]int{}
	for _, j := range jobs {
		for _, v := range j.Result.Views {
			times[v.Name]++
		}
	}
	for _, v := range jobs[0].Result.Views {
		if times[v.Name] == len(jobs) {
			views = append(views, v.Name)
		}
	}
	return views, len(views) == len(times)
}
