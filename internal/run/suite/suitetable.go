package suite

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
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
	Resumed bool         `json:"resumed,omitempty"`
	Numbers suiteNumbers `json:"numbers"`
}

// suiteGroup is the mean over captures of one recipe.
type suiteGroup struct {
	Name    string       `json:"name"`
	Recipe  string       `json:"recipe"`
	Missing []string     `json:"missing,omitempty"` // captures without numbers: there is no mean then
	Numbers suiteNumbers `json:"numbers"`
}

// suiteNumbers are what is measured of a run, by name and in the order of tables. What is not known is no number.
type suiteNumbers []results.Score

// MarshalJSON implements json.Marshaler: an object of what is known.
func (n suiteNumbers) MarshalJSON() ([]byte, error) {
	known := map[string]float64{}
	for _, s := range n {
		if s.Known {
			known[s.Name] = s.Value
		}
	}
	return json.Marshal(known)
}

// Names of the numbers beside scores.
const (
	numberLoop   = "loop_seconds"
	numberWall   = "wall_seconds"
	numberPeak   = "peak_device_bytes"
	numberSplats = "splats"
)

// columns are the columns of these numbers: head, format and unit.
var columns = map[string]struct {
	head, format string
	unit         float64
}{
	numberLoop:   {"loop s", "%.1f", 1},
	numberWall:   {"wall s", "%.1f", 1},
	numberPeak:   {"peak MiB", "%.0f", 1 << 20},
	numberSplats: {"splats", "%.0f", 1},
}

func (r *suiteRun) numbers() suiteNumbers {
	if r.stats == nil {
		return nil
	}
	known := func(name string, value float64) results.Score {
		return results.Score{Name: name, Value: value, Known: true}
	}
	n := suiteNumbers{known(numberLoop, r.stats.TrainSeconds), known(numberWall, r.record.WallSeconds),
		known(numberPeak, float64(r.stats.PeakDeviceBytes)),
		known(numberSplats, float64(r.stats.Splats))}
	return append(n, r.scores...)
}

// resumed reports whether the process that ended the run went on with a checkpoint of another.
func (r *suiteRun) resumed() bool {
	return r.stats != nil && r.stats.Run != nil && r.stats.Run.ResumedFrom > 0
}

// meanNumbers returns the means of numbers that have the same names; what one of them does not know is not known.
func meanNumbers(list []suiteNumbers) suiteNumbers {
	r := &results.Result{}
	for _, n := range list {
		r.Views = append(r.Views, results.ViewScores{Scores: n})
	}
	return r.Means()
}

// results sums up the runs so far.
func (p *Plan) results(runs []*suiteRun) *suiteResults {
	out := &suiteResults{Format: suiteFormat, Version: cli.Version(), Commit: cli.CommitID(), Preset: p.Preset,
		Source: p.Source, Protocol: p.Protocol, Correct: p.Correct,
		Runs: []suiteLine{}, Means: []suiteLine{}, Groups: []suiteGroup{}}
	for _, r := range runs {
		line := suiteLine{Capture: r.capture, Recipe: r.recipe, Seeds: []int64{r.seed}, Of: 1, Out: r.out,
			Error: r.failure, Resumed: r.resumed(), Numbers: r.numbers(), Drawn: r.drawn}
		if r.stats != nil {
			line.Device = r.stats.Device
		} else if line.Error == "" {
			line.Error = "not done yet"
		}
		out.Runs = append(out.Runs, line)
	}
	for _, c := range p.Captures {
		for _, recipe := range p.recipes {
			m := suiteLine{Capture: c.name, Recipe: recipe.name, Seeds: []int64{}, Of: len(p.Seeds)}
			var list []suiteNumbers
			for _, r := range runs {
				if r.capture == c.name && r.recipe == recipe.name && r.stats != nil {
					list = append(list, r.numbers())
					m.Seeds = append(m.Seeds, r.seed)
					m.Resumed = m.Resumed || r.resumed()
				}
			}
			m.Numbers = meanNumbers(list)
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
	group := suiteGroup{Name: g.Name, Recipe: recipe}
	var list []suiteNumbers
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
		group.Numbers = meanNumbers(list)
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
	names := results.names()
	means, each := &evaluate.MarkdownTable{}, &evaluate.MarkdownTable{}
	head := make([]string, len(names))
	for i, name := range names {
		head[i] = cmp.Or(columns[name].head, fmt.Sprintf("%s (%s)", name, p.Protocol))
	}
	means.Add(append([]string{"capture", "recipe", "seeds"}, head...)...)
	each.Add(append([]string{"capture", "recipe", "seed"}, head...)...)
	for _, m := range results.Means {
		means.Add(append([]string{m.Capture, m.Recipe,
			fmt.Sprintf("%d of %d%s", len(m.Seeds), m.Of, starOf(m.Resumed))}, cells(names, m.Numbers)...)...)
	}
	for _, g := range results.Groups {
		label := "**" + g.Name + "**"
		if len(g.Missing) > 0 {
			label += " without " + strings.Join(g.Missing, ", ")
		}
		means.Add(append([]string{label, g.Recipe, ""}, cells(names, g.Numbers)...)...)
	}
	for _, r := range results.Runs {
		each.Add(append([]string{r.Capture, r.Recipe, fmt.Sprintf("%d%s", r.Seeds[0], starOf(r.Resumed))},
			cells(names, r.Numbers)...)...)
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
	text += results.drawnText()
	if slices.ContainsFunc(runs, (*suiteRun).resumed) {
		text += "\\* was interrupted and resumed: seconds and peak exclude the processes that did not finish.\n"
	}
	for _, r := range results.Runs {
		if r.Error != "" {
			text += fmt.Sprintf("\n%s, %s, seed %d: %s\n", r.Capture, r.Recipe, r.Seeds[0], wording.Printable(r.Error))
		}
	}
	return text
}

// drawnText says how the models were drawn, a line for all that are drawn alike.
func (s *suiteResults) drawnText() (text string) {
	var ways []string
	who := map[string][]string{}
	for _, r := range s.Runs {
		if r.Drawn == nil {
			continue
		}
		way, name := r.Drawn.String(), r.Capture+" "+r.Recipe
		if who[way] == nil {
			ways = append(ways, way)
		}
		if !slices.Contains(who[way], name) {
			who[way] = append(who[way], name)
		}
	}
	for _, way := range ways {
		text += "Drawn with " + way
		if len(ways) > 1 {
			text += ": " + strings.Join(who[way], ", ")
		}
		text += ".\n"
	}
	for _, c := range s.Means {
		sizes := map[string]bool{}
		for _, r := range s.Runs {
			if r.Capture == c.Capture && r.Drawn != nil {
				sizes[r.Drawn.Photos] = true
			}
		}
		line := fmt.Sprintf("**%s was measured on photos of several sizes, %s: these rows are not comparable.**\n",
			c.Capture, strings.Join(slices.Sorted(maps.Keys(sizes)), " and "))
		if len(sizes) > 1 && !strings.Contains(text, line) { // captures are there once a recipe
			text += line
		}
	}
	return text
}

func starOf(resumed bool) string {
	if resumed {
		return "*"
	}
	return ""
}

// names lists the numbers that tables show: those that a run has.
func (s *suiteResults) names() (names []string) {
	for _, r := range s.Runs {
		for _, n := range r.Numbers {
			if n.Known && !slices.Contains(names, n.Name) {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

func cells(names []string, numbers suiteNumbers) []string {
	out := make([]string, len(names))
	for i, name := range names {
		s := evaluate.Named(numbers, name)
		switch c, known := columns[name]; {
		case !s.Known:
			out[i] = "n/a"
		case known:
			out[i] = fmt.Sprintf(c.format, s.Value/c.unit)
		default:
			out[i] = evaluate.ScoreText(s)
		}
	}
	return out
}
