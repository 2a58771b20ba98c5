package task

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/store"
	"vksplat/internal/wording"
)

// attend returns a root of this task, of which is said that it waits for its store, and which soon gives that up when
// ctx has ended.
func (r *runner) attend(ctx context.Context, root store.Root) store.Root {
	r.mutex.Lock()
	r.waiting = "" // nobody has, of what begins
	r.mutex.Unlock()
	return root.Attend(ctx, r.waits)
}

// waits takes in why the store is waited for, or with nil that it answers again.
func (r *runner) waits(cause error) {
	text := ""
	if cause != nil {
		var file *fs.PathError // of which only what is wrong: names of files in the making are others each time
		if errors.As(cause, &file) {
			cause = file.Err
		}
		text = "waiting for the store: " + wording.Printable(cause.Error())
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	news := text != r.waiting
	r.waiting = text
	if news && cause != nil && r.log != nil {
		r.note(text)
	}
	r.report(news)
}

// pulse feels whether a silent child works: by the processor time of it and of the programs that it runs, or where the
// system does not tell that, by its being there.
type pulse struct {
	looked time.Time
	used   time.Duration
}

const (
	pulseEvery = 10 * time.Second
	clockTick  = 10 * time.Millisecond // unit of times in /proc: USER_HZ is 100 wherever Linux shows it to programs
	pulseShare = 100                   // a process that waits takes less than this part of a processor
)

// beats says whether the process has worked since the last look. Between looks, which are pulseEvery apart, it has not.
func (p *pulse) beats(pid int) bool {
	elapsed := time.Since(p.looked)
	if elapsed < pulseEvery {
		return false
	}
	used, known := processorTime(pid)
	worked := !known || used-p.used >= min(elapsed, time.Hour)/pulseShare
	p.looked, p.used = time.Now(), used
	return worked
}

// processorTime is what a process and the programs that it runs have used so far.
func processorTime(pid int) (used time.Duration, known bool) {
	parents, times := map[int]int{}, map[int]time.Duration{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, false
	}
	for _, file := range files {
		if at, parent, used, ok := readStat(file); ok {
			parents[at], times[at] = parent, used
		}
	}
	_, known = times[pid]
	for at, spent := range times {
		for n := 0; at != pid && at > 1 && n < len(times); n++ { // a number that is given anew may close a circle
			at = parents[at]
		}
		if at == pid {
			used += spent
		}
	}
	return used, known
}

// readStat reads a process's number, that of its parent, and what it and those of its children that have ended used.
func readStat(file string) (pid, parent int, used time.Duration, ok bool) {
	data, err := os.ReadFile(file)
	_, rest, found := strings.Cut(string(data), ") ") // the name before it may hold spaces
	words := strings.Fields(rest)
	if err != nil || !found || len(words) < 15 {
		return 0, 0, 0, false // it has ended
	}
	pid, err = strconv.Atoi(filepath.Base(filepath.Dir(file)))
	parent, err1 := strconv.Atoi(words[1])
	for _, word := range words[11:15] {
		ticks, err2 := strconv.ParseInt(word, 10, 64)
		err = errors.Join(err, err2)
		used += time.Duration(ticks) * clockTick
	}
	return pid, parent, used, errors.Join(err, err1) == nil
}
