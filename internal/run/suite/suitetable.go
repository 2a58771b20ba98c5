package suite

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/scene/results"
)

const (
	suiteMarkdown = "suite.md"
	suiteJSON     = "suite.json"
)

const suiteFormat = 1

type suiteResults struct {
	Format   int          `json:"format"`
	Version  string       `json:"version"`
	Commit   string       `json:"commit,omitempty"`
	Preset   string       `json:"preset,omitempty"`
	Source   string       `json:"source,omitempty"` // of the photos
	Protocol string       `json:"protocol"`
	Correct  string       `json:"color_correct"`
	Runs     []suiteLine  `json:"runs"`
	Means    []suiteLine  `json:"means"`  // over the seeds that are done
	Groups   []suiteGroup `json:"groups"` // over captures, of those means
}

// suiteLine is one run, or the mean of those that differ in the seed alone.
type suiteLine struct {
	Capture string         `json:"capture"`
	Recipe  string         `json:"recipe"`
	Seeds   []int64        `json:"seeds"`
	Of      int            `json:"seeds_asked"`
	Out     string         `json:"out,omitempty"`
	Device  string         `json:"device,omitempty"`
	Error   string         `json:"error,omitempty"` // why there are no numbers
	Drawn   *results.Drawn `json:"drawn,omitempty"` // what decides the scores beside the model's file
	// seconds and peak lack what processes took that did not come to their end
	Resumed bool    `json:"resumed,omitempty"`
	Numbers numbers `json:"numbers"`
}

// name is a run's name in messages.
func (l *suiteLine) name() string {
	return fmt.Sprintf("%s, %s, seed %d", l.Capture, l.Recipe, l.Seeds[0])
}

// suiteGroup is the mean over captures of one recipe.
type suiteGroup struct {
	Name    string   `json:"name"`
	Recipe  string   `json:"recipe"`
	Missing []string `json:"missing,omitempty"` // captures without numbers: there is no mean then
	Numbers numbers  `json:"numbers"`
}

// numbers are what is known of a run, by name.
type numbers map[string]float64

// columns are the numbers of tables beside scores, in order.
var columns = []struct {
	name, head, format string
	unit               float64
}{
	{"loop_seconds", "loop s", "%.1f", 1},
	{"wall_seconds", "wall s", "%.1f", 1},
	{"peak_device_bytes", "peak MiB", "%.0f", 1 << 20},
	{"splats", "splats", "%.0f", 1},
}

var scoreNames = slices.Concat(evaluate.PlainNames[:], evaluate.CorrectNames[:], evaluate.UnmaskedNames[:])

// text is a number as tables show it.
func (n numbers) text(name string) string {
	value, known := n[name]
	for _, c := range columns {
		if known && c.name == name {
			return fmt.Sprintf(c.format, value/c.unit)
		}
	}
	return evaluate.ScoreText(results.Score{Name: name, Value: value, Known: known})
}

// meanOf returns the means of the numbers that all of list know.
func meanOf(list []numbers) numbers {
	means := numbers{}
	for _, n := range list {
		for name, value := range n {
			means[name] += value
		}
	}
	for name := range means {
		if slices.ContainsFunc(list, func(n numbers) bool { _, known := n[name]; return !known }) {
			delete(means, name)
		} else {
			means[name] /= float64(len(list))
		}
	}
	return means
}

// results sums up the runs so far.
func (p *Plan) results(runs []*suiteRun) *suiteResults {
	out := &suiteResults{Format: suiteFormat, Version: cli.Version(), Commit: cli.CommitID(), Preset: p.Preset,
		Source: p.Source, Protocol: p.Protocol, Correct: p.Correct,
		Runs: []suiteLine{}, Means: []suiteLine{}, Groups: []suiteGroup{}}
	for _, r := range runs {
		line := r.suiteLine
		if len(line.Numbers) == 0 {
			line.Error = cmp.Or(line.Error, "not done yet")
		}
		out.Runs = append(out.Runs, line)
	}
	for _, c := range p.Captures {
		for _, recipe := range p.recipes {
			m := suiteLine{Capture: c.name, Recipe: recipe.name, Seeds: []int64{}, Of: len(p.Seeds)}
			var list []numbers
			for _, r := range runs {
				if r.Capture == c.name && r.Recipe == recipe.name && len(r.Numbers) > 0 {
					list = append(list, r.Numbers)
					m.Seeds = append(m.Seeds, r.Seeds...)
					m.Resumed = m.Resumed || r.Resumed
				}
			}
			m.Numbers = meanOf(list)
			out.Means = append(out.Means, m)
		}
	}
	for _, g := range p.Means {
		for _, recipe := range p.recipes {
			out.Groups = append(out.Groups, groupOf(g, recipe.name, out.Means))
		}
	}
	return out
}

// groupOf takes the mean over a group's captures.
func groupOf(g suiteMean, recipe string, means []suiteLine) suiteGroup {
	group := suiteGroup{Name: g.Name, Recipe: recipe, Numbers: numbers{}}
	var list []numbers
	for _, m := range means {
		switch {
		case m.Recipe != recipe || !slices.Contains(g.Captures, m.Capture):
		case len(m.Seeds) == 0:
			group.Missing = append(group.Missing, m.Capture)
		default:
			list = append(list, m.Numbers)
		}
	}
	if len(group.Missing) == 0 {
		group.Numbers = meanOf(list)
	}
	return group
}

// list refuses to replace tables that a suite did not write, or that were changed since, and begins the list of those
// that this one writes.
func (p *Plan) list() (end func() error, err error) {
	own := output.ReadWritten(p.Out)
	tables := []string{filepath.Join(p.Out, suiteJSON), filepath.Join(p.Out, suiteMarkdown)}
	if err := output.RefuseForeign(own.Foreign(tables), "or name another out in the file"); err != nil {
		return nil, err
	}
	return own.End, own.Begin(tables...)
}

func (p *Plan) writeTables(runs []*suiteRun) error {
	if err := output.WriteJSON(filepath.Join(p.Out, suiteJSON), p.results(runs)); err != nil {
		return err
	}
	return atomicfile.WriteText(filepath.Join(p.Out, suiteMarkdown), p.tables(runs))
}

// tables prints the results: the means over the seeds with those of the groups, and every run.
func (p *Plan) tables(runs []*suiteRun) string {
	results := p.results(runs)
	names, heads := results.names(p.Protocol)
	cells := func(n numbers, first ...string) []string {
		for _, name := range names {
			first = append(first, n.text(name))
		}
		return first
	}
	star := map[bool]string{true: "*"}
	means, each := &evaluate.MarkdownTable{}, &evaluate.MarkdownTable{}
	means.Add(append([]string{"capture", "recipe", "seeds"}, heads...)...)
	each.Add(append([]string{"capture", "recipe", "seed"}, heads...)...)
	for _, m := range results.Means {
		means.Add(cells(m.Numbers, m.Capture, m.Recipe,
			fmt.Sprintf("%d of %d%s", len(m.Seeds), m.Of, star[m.Resumed]))...)
	}
	for _, g := range results.Groups {
		label := "**" + g.Name + "**"
		if len(g.Missing) > 0 {
			label += " without " + strings.Join(g.Missing, ", ")
		}
		means.Add(cells(g.Numbers, label, g.Recipe, "")...)
	}
	for _, r := range results.Runs {
		each.Add(cells(r.Numbers, r.Capture, r.Recipe, fmt.Sprintf("%d%s", r.Seeds[0], star[r.Resumed]))...)
	}
	title := strings.TrimSuffix(filepath.Base(p.name), filepath.Ext(p.name))
	if p.Preset != "" {
		title += ", preset " + p.Preset
	}
	if p.Source != "" {
		title += ", photos " + p.Source
	}
	text := fmt.Sprintf("## %s\n\nMeans over seeds:\n\n%s\nEvery run:\n\n%s\n", title, means, each)
	text += (&evaluate.Scorer{Protocol: evaluate.ProtocolOf(p.Protocol), Correct: p.Correct}).Legend(means, each) +
		" Loop: the training steps alone; wall: processes of train from start to end.\n"
	text += p.drawnText(runs)
	if slices.ContainsFunc(runs, func(r *suiteRun) bool { return r.Resumed }) {
		text += "\\* was interrupted and resumed: seconds and peak exclude the processes that did not finish.\n"
	}
	for _, r := range results.Runs {
		if r.Error != "" {
			text += fmt.Sprintf("\n%s: %s\n", r.name(), wording.Printable(r.Error))
		}
	}
	return text
}

// drawnText says how the models were drawn, a line for all that are drawn alike.
func (p *Plan) drawnText(runs []*suiteRun) (text string) {
	var ways []string
	who, sizes := map[string][]string{}, map[string][]string{} // by way, and by capture
	for _, r := range runs {
		if r.Drawn == nil {
			continue
		}
		way := r.Drawn.String()
		ways = addNew(ways, way)
		who[way] = addNew(who[way], r.Capture+" "+r.Recipe)
		sizes[r.Capture] = addNew(sizes[r.Capture], r.Drawn.Photos)
	}
	for _, way := range ways {
		text += "Drawn with " + way
		if len(ways) > 1 {
			text += ": " + strings.Join(who[way], ", ")
		}
		text += ".\n"
	}
	for _, c := range p.Captures {
		if list := sizes[c.name]; len(list) > 1 {
			slices.Sort(list)
			text += fmt.Sprintf("**%s was measured on photos of several sizes, %s: these rows are not comparable.**\n",
				c.name, strings.Join(list, " and "))
		}
	}
	return text
}

// addNew appends what is not in the list.
func addNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// names lists the numbers that tables show, those that a run has, with their heads.
func (s *suiteResults) names(protocol string) (names, heads []string) {
	add := func(name, head string) {
		if slices.ContainsFunc(s.Runs, func(r suiteLine) bool { _, known := r.Numbers[name]; return known }) {
			names, heads = append(names, name), append(heads, head)
		}
	}
	for _, c := range columns {
		add(c.name, c.head)
	}
	for _, name := range scoreNames {
		add(name, fmt.Sprintf("%s (%s)", name, protocol))
	}
	return names, heads
}
