package export

import (
	"fmt"
	"path"
	"strings"

	"vksplat/farm/spec"
	"vksplat/internal/fault"
)

// HTCondor writes a submit file for each stage of the job, and a DAG for DAGMan with a node for each task.
func HTCondor(j *spec.Job, p *spec.Plan, o Options) ([]File, error) {
	if err := o.shared(); err != nil {
		return nil, err
	}
	if o.MemoryGB == 0 {
		return nil, usage("", "as in "+fault.Setting("memory")+" 16",
			"HTCondor gives a task 128 MB unless it asks for memory")
	}
	stages, of, _ := stagesOf(p)
	if err := checkPins(stages); err != nil {
		return nil, err
	}
	files := []File{document(j)}
	for i := range stages {
		files = append(files, File{Name: stages[i].name + ".sub", Data: o.submitFile(&stages[i])})
	}
	return append(files, File{Name: HTCondorName, Data: o.dag(label(j), p, stages, of)}), nil
}

// submitFile describes the tasks of a stage; the DAG gives each its index. They start in a scratch folder of their own,
// from which HTCondor fetches nothing. The schedd itself repeats attempts: DAGMan's RETRY stops at one exit code only.
func (o *Options) submitFile(st *stage) []byte {
	var b strings.Builder
	set := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	in := *o
	if in.Work == "" {
		in.Work = "work" // in the scratch folder
	}
	set("# Stage %s. %s submits it.", st.name, HTCondorName)
	set("universe = vanilla\nexecutable = /usr/bin/env\ntransfer_executable = false")
	words := append([]string{o.Program}, in.runTask(path.Join(o.Dir, DocumentName))...)
	set("arguments = \"%s --index $(index)\"", strings.Join(words, " "))
	set("should_transfer_files = YES\ntransfer_output_files = \"\"")
	log := fmt.Sprintf("%s/%s/%s-$(index).log", o.Dir, LogFolder, st.name)
	set("output = %s\nerror = %s", log, log)
	set("\n# Another attempt only after exit code 75, or when it was killed.")
	set("max_retries = %d\nretry_until = ExitBySignal =?= false && ExitCode =!= 75", st.retry.MaxAttempts-1)
	set("\n# SIGTERM lets a task save its work.\nkill_sig = SIGTERM\njob_max_vacate_time = %d\n", int(grace.Seconds()))
	set("request_memory = %dGB", o.MemoryGB)
	if o.CPUs > 0 {
		set("request_cpus = %d", o.CPUs)
	}
	if st.limits.DiskMinGB > 0 {
		set("request_disk = %dGB", st.limits.DiskMinGB)
	}
	if n := o.gpusOf(st); n > 0 {
		set("request_gpus = %d", n)
		if st.limits.VRAMMinMB > 0 {
			set("gpus_minimum_memory = %d", st.limits.VRAMMinMB)
		}
	}
	if st.pool != spec.DefaultPool {
		set("requirements = TARGET.VksplatPool =?= \"%s\"", st.pool)
	}
	if n := map[string]int{"high": 10, "low": -10}[st.priority]; n != 0 {
		set("priority = %d", n)
	}
	if d := st.limits.TaskTimeout; d > 0 {
		set("periodic_remove = JobStatus == 2 && time() - EnteredCurrentStatus > %d", 60*minutes(d))
	}
	set("queue")
	return []byte(b.String())
}

// dag lists the nodes, and what each waits for. Tasks with the same needs share a line, for which DAGMan makes one node
// that joins them.
func (o *Options) dag(name string, p *spec.Plan, stages []stage, of []int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# Job %s.\n", name)
	node := func(i int) string { return fmt.Sprintf("%s-%d", stages[of[i]].name, i) }
	nodes := func(list []int) string {
		var words []string
		for _, i := range list {
			words = append(words, node(i))
		}
		return strings.Join(words, " ")
	}
	for n := range stages {
		st := &stages[n]
		for _, i := range st.tasks {
			fmt.Fprintf(&b, "JOB %s %s/%s.sub\nVARS %s index=\"%d\"\n", node(i), o.Dir, st.name, node(i), i)
			if o.Parallel > 0 {
				fmt.Fprintf(&b, "CATEGORY %s %s\n", node(i), st.name)
			}
		}
		if o.Parallel > 0 {
			fmt.Fprintf(&b, "MAXJOBS %s %d\n", st.name, o.Parallel)
		}
	}
	for n := range stages {
		for _, g := range groupsOf(p, stages[n].tasks) {
			if needs := p.Tasks[g[0]].Needs; len(needs) > 0 {
				fmt.Fprintf(&b, "PARENT %s CHILD %s\n", nodes(needs), nodes(g))
			}
		}
	}
	return []byte(b.String())
}
