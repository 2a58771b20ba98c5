package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/task"
)

// stage is the tasks that a scheduler receives together: of one kind, as deep in the graph of needs as each other, and
// alike in what they ask for.
type stage struct {
	name  string // as in 02-train
	tasks []int  // ascending
	needs []int  // stages, ascending
	alike        // what the tasks ask for
}

// alike is what tasks of one stage have in common.
type alike struct {
	depth    int
	kind     *spec.Kind
	pool     string
	priority string
	retry    spec.Retry
	limits   spec.Limits
	pin      spec.Pin
}

// gpusOf is how many GPUs a task of a stage gets.
func (o *Options) gpusOf(st *stage) int {
	if !st.kind.NeedsDevice {
		return 0
	}
	return o.GPUs
}

// stagesOf divides a plan.
func stagesOf(p *spec.Plan) (stages []*stage) {
	depths := depthsOf(p)
	index := map[alike]*stage{}
	of := make([]*stage, len(p.Tasks))
	for i := range p.Tasks {
		t := &p.Tasks[i]
		a := alike{depths[i], t.Kind, t.Pool, t.Priority, t.Retry, t.Limits, t.Pin}
		if index[a] == nil {
			index[a] = &stage{alike: a}
			stages = append(stages, index[a])
		}
		of[i] = index[a]
		of[i].tasks = append(of[i].tasks, i)
	}
	slices.SortStableFunc(stages, func(a, b *stage) int { return a.depth - b.depth })
	for n, st := range stages {
		st.name = fmt.Sprintf("%02d-%s", n+1, st.kind)
		needs := map[*stage]bool{}
		for _, i := range st.tasks {
			for _, k := range p.Tasks[i].Needs {
				needs[of[k]] = true
			}
		}
		for earlier := range n {
			if needs[stages[earlier]] {
				st.needs = append(st.needs, earlier)
			}
		}
	}
	return stages
}

// depthsOf says how long the longest chain of needs before each task is. Tasks may need later ones, never themselves.
func depthsOf(p *spec.Plan) []int {
	depths := make([]int, len(p.Tasks)) // 1 and more once known
	var visit func(i int) int
	visit = func(i int) int {
		if depths[i] == 0 {
			most := 0
			for _, k := range p.Tasks[i].Needs {
				most = max(most, visit(k))
			}
			depths[i] = most + 1
		}
		return depths[i]
	}
	for i := range p.Tasks {
		visit(i)
	}
	return depths
}

// groupsOf divides tasks into those that need the same.
func groupsOf(p *spec.Plan, tasks []int) (groups [][]int) {
	index := map[string]int{}
	for _, i := range tasks {
		key := rangeText(p.Tasks[i].Needs)
		n, known := index[key]
		if !known {
			n = len(groups)
			index[key] = n
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	return groups
}

// runs calls each for every run of consecutive numbers in an ascending list.
func runs(list []int, each func(first, last int)) {
	for i := 0; i < len(list); {
		k := i
		for k+1 < len(list) && list[k+1] == list[k]+1 {
			k++
		}
		each(list[i], list[k])
		i = k + 1
	}
}

// rangeText writes an ascending list as in 0-17,22.
func rangeText(list []int) string {
	var parts []string
	runs(list, func(first, last int) {
		if first == last {
			parts = append(parts, strconv.Itoa(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
	})
	return strings.Join(parts, ",")
}

// Nth is number n, counted from 0, of a list that rangeText wrote.
func Nth(list string, n int) (int, error) {
	for part := range strings.SplitSeq(list, ",") {
		a, b, isRange := strings.Cut(part, "-")
		first, err := strconv.ParseUint(a, 10, 31)
		last := first
		if isRange && err == nil {
			last, err = strconv.ParseUint(b, 10, 31)
		}
		switch {
		case err != nil || last < first:
			return 0, usage("", "as in 0-17,22", "%.60q is not a list of tasks", list)
		case n >= 0 && uint64(n) <= last-first:
			return int(first) + n, nil
		}
		n -= int(last - first + 1)
	}
	return 0, usage("", "", "the list %.60q has no such task", list)
}

// checkPins refuses what no scheduler knows.
func checkPins(stages []*stage) error {
	for _, st := range stages {
		if st.pin != (spec.Pin{}) {
			return usage("", "leave pin out, and give such devices a pool of their own",
				"stage %s is pinned to a device or driver, which schedulers do not support", st.name)
		}
	}
	return nil
}

// grace is how long a task that is stopped has before it is killed: what it may take, and what scripts around it do.
const grace = task.StopWithin + 30*time.Second
