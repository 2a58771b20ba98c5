package export

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"vksplat/farm/spec"
)

// DefaultMaxArray is MaxArraySize of a cluster that sets none.
const DefaultMaxArray = 1001

// array is one submission of a stage's script: some of its tasks, which wait for the same.
type array struct {
	stage int
	tasks []int // ascending
	first int   // place of the first in the script's list
	after []int // arrays of which tasks must have ended well: the one of the same place each
	wait  []int // arrays of which all or some tasks must have
}

// mostGroups bounds the arrays that a stage is divided into because its tasks wait for different ones.
const mostGroups = 256

// slurm collects the arrays of a plan.
type slurm struct {
	*Options
	plan    *spec.Plan
	stages  []*stage
	lists   [][]int // tasks of each stage, in the order of its script
	arrays  []array
	arrayOf []int // of each task
	placeOf []int // in it
	label   string
}

// Slurm writes a script for each stage of the job, which runs as arrays, and one that submits them.
func Slurm(j *spec.Job, p *spec.Plan, o Options) ([]File, error) {
	if err := o.shared(); err != nil {
		return nil, err
	}
	s := &slurm{Options: &o, plan: p, label: label(j),
		arrayOf: make([]int, len(p.Tasks)), placeOf: make([]int, len(p.Tasks))}
	s.stages = stagesOf(p)
	if err := checkPins(s.stages); err != nil {
		return nil, err
	}
	s.lists = make([][]int, len(s.stages))
	for i := range s.stages {
		s.divide(i)
	}
	files := []File{document(j)}
	for i := range s.stages {
		files = append(files, File{Name: s.script(i), Data: s.batch(i), Program: true})
	}
	return append(files, File{Name: SubmitName, Data: s.submit(), Program: true}), nil
}

func (s *slurm) script(stage int) string { return s.stages[stage].name + ".sbatch" }

// divide makes the arrays of a stage: one where each task waits for that of its own place in an array of a stage
// before, or one for each set of needs, so that none waits for what it does not need, and each in pieces of MaxArray.
func (s *slurm) divide(stage int) {
	tasks := s.stages[stage].tasks
	if !s.stages[stage].kind.Gathers && s.paired(tasks) {
		s.cut(stage, tasks)
		return
	}
	groups := groupsOf(s.plan, tasks)
	if len(groups) > mostGroups {
		groups = [][]int{tasks}
	}
	for _, g := range groups {
		s.cut(stage, g)
	}
}

// paired says that no task needs more than one of a stage, and that those are tasks of the same place there.
func (s *slurm) paired(tasks []int) bool {
	for n, i := range tasks {
		for _, k := range s.plan.Tasks[i].Needs {
			first := s.arrays[s.arrayOf[k]].first + s.placeOf[k]
			if first != n {
				return false
			}
		}
	}
	return true
}

// cut adds arrays of at most MaxArray tasks.
func (s *slurm) cut(stage int, tasks []int) {
	for piece := range slices.Chunk(tasks, s.MaxArray) {
		a := array{stage: stage, tasks: piece, first: len(s.lists[stage])}
		s.lists[stage] = append(s.lists[stage], piece...)
		for n, i := range piece {
			s.arrayOf[i], s.placeOf[i] = len(s.arrays), n
		}
		s.link(&a)
		s.arrays = append(s.arrays, a)
	}
}

// link finds the arrays that one waits for.
func (s *slurm) link(a *array) {
	shifted := map[int]bool{} // by array: others are needed of it than the task of the same place
	for n, i := range a.tasks {
		for _, k := range s.plan.Tasks[i].Needs {
			from := s.arrayOf[k]
			shifted[from] = shifted[from] || s.placeOf[k] != n || len(a.tasks) > len(s.arrays[from].tasks)
		}
	}
	for _, from := range slices.Sorted(maps.Keys(shifted)) {
		if s.stages[a.stage].kind.Gathers || shifted[from] || len(a.tasks) == 1 {
			a.wait = append(a.wait, from)
		} else {
			a.after = append(a.after, from)
		}
	}
}

// mostNamed is how many tasks of an array are named one by one in a dependency on it.
const mostNamed = 16

// dependency is sbatch's text for what an array waits for.
func (s *slurm) dependency(a *array) string {
	var parts []string
	for _, from := range a.after {
		parts = append(parts, fmt.Sprintf("aftercorr:$a%d", from+1))
	}
	for _, from := range a.wait {
		places, after := s.needed(a, from), "afterok"
		if s.canLack(a, from) {
			after = "afterany"
		}
		if len(places) == len(s.arrays[from].tasks) || len(places) > mostNamed {
			parts = append(parts, fmt.Sprintf("%s:$a%d", after, from+1))
			continue
		}
		for _, n := range places {
			parts = append(parts, fmt.Sprintf("%s:${a%d}_%d", after, from+1, n))
		}
	}
	return strings.Join(parts, ",")
}

// canLack says whether the tasks of an array can do without any that they need of another, as long as one is left.
func (s *slurm) canLack(a *array, from int) bool {
	for _, i := range a.tasks {
		t := &s.plan.Tasks[i]
		reads := t.Reads()
		for _, k := range t.Needs {
			if _, read := slices.BinarySearch(reads, k); s.arrayOf[k] == from && !read {
				return false
			}
		}
	}
	return s.stages[a.stage].kind.Gathers
}

// needed lists the places in an array of what another's tasks need.
func (s *slurm) needed(a *array, from int) (places []int) {
	for _, i := range a.tasks {
		for _, k := range s.plan.Tasks[i].Needs {
			if s.arrayOf[k] == from {
				places = append(places, s.placeOf[k])
			}
		}
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// starting is what a task takes besides its timeout and its end, of which run-task counts neither.
const starting = 3 * time.Minute

// minutes rounds up, with what starting and saving take on top.
func minutes(d time.Duration) int { return int((d + starting + grace + time.Minute - 1) / time.Minute) }

// batch writes the script of a stage.
func (s *slurm) batch(n int) []byte {
	st := s.stages[n]
	var b strings.Builder
	fmt.Fprintf(&b, "#!/bin/bash\n# Stage %s of job %s. %s submits it.\n", st.name, s.label, SubmitName)
	directive := func(format string, args ...any) { fmt.Fprintf(&b, "#SBATCH "+format+"\n", args...) }
	directive("--job-name=%s-%s", s.label, st.name)
	directive("--output=%s/%s/%s-%%A_%%a.log", s.Dir, LogFolder, st.name)
	directive("--open-mode=append")
	directive("--requeue")
	directive("--signal=B:TERM@%d", int(grace.Seconds()))
	directive("--kill-on-invalid-dep=yes")
	directive("--ntasks=1")
	if s.CPUs > 0 {
		directive("--cpus-per-task=%d", s.CPUs)
	}
	if s.MemoryGB > 0 {
		directive("--mem=%dG", s.MemoryGB)
	}
	if n := s.gpusOf(st); n > 0 {
		directive("--gres=gpu:%d", n)
	}
	if st.limits.TaskTimeout > 0 {
		directive("--time=%d", minutes(st.limits.TaskTimeout))
	}
	if st.pool != spec.DefaultPool {
		directive("--constraint=%s", st.pool)
	}
	if nice := map[string]int{"normal": 100, "low": 1000}[st.priority]; nice > 0 {
		directive("--nice=%d", nice)
	}
	b.WriteString(tableText(s.lists[n]))
	command := append([]string{s.Program}, s.runTask(path.Join(s.Dir, DocumentName))...)
	if st.kind.Gathers { // it runs once those that it reads have ended, well or not
		command = append(command, "--gather")
	}
	fmt.Fprintf(&b, batchText, st.retry.MaxAttempts, runText, strings.Join(command, " "))
	return []byte(b.String())
}

// tableText writes bash's array of a stage's tasks.
func tableText(list []int) string {
	var words []string
	runs(list, func(first, last int) { // the list ascends in pieces
		if last-first > 1 {
			words = append(words, fmt.Sprintf("{%d..%d}", first, last))
			return
		}
		for i := first; i <= last; i++ {
			words = append(words, fmt.Sprint(i))
		}
	})
	return "tasks=(" + strings.Join(words, " ") + ")\n"
}

// batchText is what a task of an array does. Slurm requeues tasks whose node died or that it preempted, but none whose
// program ends with an error: the script does that. Its first argument is the place of the array's task 0 in the table.
const batchText = `index=${tasks[$((${1:-0} + SLURM_ARRAY_TASK_ID))]}
restarts=${SLURM_RESTART_COUNT:-0}
attempts=%d

%s
run %s \
	--index "$index"

# 75: another attempt may succeed; 128 and above: it was killed. A task whose time is over goes on as often as it takes,
# within reason. One that was cancelled, or that Slurm requeues by itself, is no longer running for Slurm.
[ -n "$stopped" ] && attempts=1000
id=${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}
if { [ "$code" -eq 75 ] || [ "$code" -ge 128 ]; } && [ "$((restarts + 1))" -lt "$attempts" ] &&
	[ "$(squeue --noheader --jobs="$id" --format=%%T)" = RUNNING ]; then
	echo "task $index: code $code after attempt $((restarts + 1)), it is queued again" >&2
	trap - TERM # by which Slurm ends this script, to queue it again
	scontrol requeue "$id" && sleep 60
fi
exit "$code"
`

// submit writes the script that submits all arrays.
func (s *slurm) submit() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, submitText, s.label, s.Dir, LogFolder)
	for n := range s.arrays {
		a := &s.arrays[n]
		fmt.Fprintf(&b, "submit %s %s %d \"%s\" && a%d=$id || exit\n",
			s.script(a.stage), s.elements(a), a.first, s.dependency(a), n+1)
	}
	fmt.Fprintf(&b, "trap - EXIT\n")
	return []byte(b.String())
}

// elements is the text of --array.
func (s *slurm) elements(a *array) string {
	text := fmt.Sprintf("0-%d", len(a.tasks)-1)
	if s.Parallel > 0 {
		text += fmt.Sprintf("%%%d", s.Parallel)
	}
	return text
}

const submitText = `#!/bin/bash
# Submits job %s. What follows the name of this script goes to every sbatch, as in --account=lab; with --test-only Slurm
# just looks at the scripts.
cd %s && mkdir -p %s || exit

jobs=()
trap '[ ${#jobs[@]} -gt 0 ] && echo "submitting failed: what was submitted is cancelled" >&2 &&
	scancel "${jobs[@]}"' EXIT
options=("$@")
test=
for option in "$@"; do
	[ "$option" = --test-only ] && test=1
done

# submit SCRIPT ELEMENTS PLACE DEPENDENCY leaves the number of the job in id.
submit() {
	if [ -n "$test" ]; then
		id=0
		sbatch "${options[@]}" --array="$2" "$1" "$3"
		return
	fi
	local depend=()
	[ -n "$4" ] && depend=(--dependency="$4")
	id=$(sbatch --parsable "${depend[@]}" "${options[@]}" --array="$2" "$1" "$3") || return
	id=${id%%%%;*}
	jobs+=("$id")
	echo "$id $1 $2"
}

`
