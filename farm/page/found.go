package page

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"vksplat/farm/local"
	"vksplat/farm/store"
	"vksplat/internal/fault"
)

// begun is the state of a task of which there are logs or checkpoints, but no results, where no run writes a status.
const begun local.State = "begun"

// foundFor is how long what was found is shown: all files of the job are listed for it.
const foundFor = 20 * time.Second

// findTasks makes a status of what the tasks of a job left in the store, as those have that a scheduler runs. Of tasks
// that have not begun it knows nothing. The caller holds mutex.
func (p *pages) findTasks() (*local.Status, error) {
	if p.found != nil && p.now().Before(p.findAgain) {
		return p.found, nil
	}
	tasks, err := store.Tasks(p.root, p.key)
	if err != nil {
		return nil, err
	}
	list, _, err := p.root.List(p.key)
	if err != nil {
		return nil, err
	}
	last, results := map[string]time.Time{}, map[string]bool{} // by key of a task: when it last wrote something
	for _, one := range tasks {
		last[one.Key], results[one.Key] = one.Changed, one.Results
	}
	for _, e := range list {
		key, isLog := strings.CutSuffix(path.Dir(e.Key), "/log")
		if isLog && !strings.Contains(e.Key, "/out/") && !e.Modified.Before(last[key]) {
			last[key] = e.Modified
		}
	}
	s := &local.Status{Job: path.Base(p.key)}
	for key, at := range last {
		t := local.TaskStatus{Task: strings.TrimPrefix(key, p.key+"/"), State: begun}
		if results[key] {
			err = p.readResults(key, &t)
		}
		if err != nil {
			return nil, err
		}
		if t.State == begun && !at.IsZero() {
			t.Message = "last status at " + at.Local().Format(time.DateTime)
		}
		s.Tasks = append(s.Tasks, t)
	}
	if len(s.Tasks) == 0 {
		return nil, fs.ErrNotExist
	}
	slices.SortFunc(s.Tasks, func(a, b local.TaskStatus) int { return strings.Compare(a.Task, b.Task) })
	p.found, p.findAgain = s, p.now().Add(foundFor)
	return s, nil
}

// askEvery is how long what the farm's server said is shown.
var askEvery = 2 * time.Second // tests have less

// fromFarm is the status that the farm's server gives, with what the store knows: tasks that are done, and pictures. It
// is nil where there is no server, or where it does not respond.
func (p *pages) fromFarm() *local.Status {
	if p.live == nil {
		return nil
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.now().Before(p.askAgain) {
		return p.said
	}
	before := p.said
	s, err := p.live()
	p.askAgain = p.now().Add(askEvery) // also if it does not respond: each question takes seconds then
	if p.said = s; err != nil {
		p.said = nil
		return nil
	}
	if before == nil || before.Counts()[local.Running] != s.Counts()[local.Running] {
		p.found = nil // a task may have ended
	}
	done := map[string]*local.TaskStatus{}
	if found, err := p.findTasks(); err == nil {
		for i := range found.Tasks {
			done[found.Tasks[i].Task] = &found.Tasks[i]
		}
	}
	pictures := map[string]bool{}
	list, _, _ := p.root.List(path.Join(p.key, path.Dir(local.PreviewKey(0)))) // there may be none
	for _, e := range list {
		pictures[path.Base(e.Key)] = true
	}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		t.Preview = pictures[path.Base(local.PreviewKey(t.Index))]
		d, open := done[t.Task], t.State == local.Waiting || t.State == local.Skipped
		if d != nil && d.State == local.Done && open {
			t.State, t.Device, t.Message = local.Done, d.Device, ""
		}
	}
	return s
}

// readResults says of a task with results how it ended.
func (p *pages) readResults(key string, t *local.TaskStatus) error {
	m, err := store.ReadManifest(p.root, store.OutOf(key))
	switch {
	case err == nil:
		t.State, t.Device = local.Done, m.Device
	case errors.Is(err, store.ErrDamaged):
		t.State, t.Error = local.Failed, "its results are damaged"
		t.Hint = fault.Command("farm fsck --repair") + " moves them away"
	case !errors.Is(err, fs.ErrNotExist): // they were taken back
		return err
	}
	return nil
}
