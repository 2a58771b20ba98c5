package main

import (
	"fmt"
	"os/exec"
	"slices"

	"vksplat/farm/queue"
	"vksplat/farm/spec"
	"vksplat/farm/task"
	"vksplat/farm/worker"
)

// checkHere refuses a folder of inputs that is not there, and a job that would wait for ever on this machine alone, and tells of videos that nothing here can make.
func (a *app) checkHere(o *submitOptions, plan *spec.Plan, devices []worker.Device) error {
	if o.inputs != "" && !isFolder(o.inputs) {
		return usagef("name the folder that the keys of the job's inputs are below", "--inputs %s: there is no such folder", o.inputs)
	}
	hasFFmpeg := true
	if _, err := exec.LookPath(ffmpegName); err != nil {
		hasFFmpeg = false
	}
	for i := range plan.Tasks {
		t := &plan.Tasks[i]
		switch needs := task.NeedsDevice(t.Kind); {
		case needs && len(devices) == 0:
			return usagef("leave out --devices none: without a GPU software Vulkan does it", "task %s (%s) needs a device, and --devices none gives it none", t.Name, t.Kind)
		case needs && !slices.ContainsFunc(devices, func(d worker.Device) bool { return d.Elsewhere(t.Pin) == "" }):
			return usagef("change the job's pin, or give other --devices; vksplat devices lists them", "task %s (%s) would wait for ever here: %s", t.Name, t.Kind, devices[0].Elsewhere(t.Pin))
		case !needs && o.work.others <= 0:
			return usagef("leave out --others, or give 1 or more", "task %s (%s) runs beside those with a device, and --others %d lets none run", t.Name, t.Kind, o.work.others)
		case t.Kind == spec.KindEncode && !hasFFmpeg:
			a.note(fmt.Sprintf("there is no program ffmpeg: task %s and others that make videos will fail; install it", t.Name))
			hasFFmpeg = true // said once
		}
	}
	return nil
}

// waitsFor lists what a job waits for that no worker has which is there now.
func waitsFor(job *spec.Job, tasks []queue.Task, nodes []queue.NodeStatus) (texts []string) {
	if len(nodes) == 0 {
		return []string{"no worker is there now: the job waits for one"}
	}
	none := func(has func(n *queue.NodeStatus) bool) bool {
		return !slices.ContainsFunc(nodes, func(n queue.NodeStatus) bool { return has(&n) })
	}
	for _, root := range slices.Compact([]string{job.Store.Inputs, job.Store.Outputs}) {
		if none(func(n *queue.NodeStatus) bool { return n.Roots == nil || slices.Contains(n.Roots, root) }) {
			texts = append(texts, fmt.Sprintf("no worker that is there now has the root %q: the job waits for one; roots are named by --root and --roots of vksplat farm worker", root))
		}
	}
	seen := map[string]bool{}
	for i := range tasks {
		pool := tasks[i].Pool
		if !seen[pool] && none(func(n *queue.NodeStatus) bool { return slices.Contains(n.Pools, pool) }) {
			texts = append(texts, fmt.Sprintf("no worker that is there now takes tasks of the pool %q: %s and others wait for one", spec.PoolOf(pool), tasks[i].Name))
		}
		seen[pool] = true
	}
	if slices.ContainsFunc(job.Tasks, func(t spec.TaskSpec) bool { return t.Kind == spec.KindEncode }) &&
		none(func(n *queue.NodeStatus) bool { return !slices.Contains(n.Lacks, string(spec.KindEncode)) }) {
		texts = append(texts, "no worker that is there now has ffmpeg: videos wait for one")
	}
	return texts
}
