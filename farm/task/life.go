package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
		_, _ = io.WriteString(r.log, text+"\n") // a full disk is told by what counts
	}
	r.report(news)
}

// pulse feels whether a silent child works: by its processor time, or where the system does not tell that, by its being
// there.
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

// processorTime is what a process has used so far.
func processorTime(pid int) (used time.Duration, known bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, found := strings.Cut(string(data), ") ") // the name before it may hold spaces
	words := strings.Fields(rest)
	if err != nil || !found || len(words) < 13 {
		return 0, false
	}
	user, err1 := strconv.ParseInt(words[11], 10, 64)
	system, err2 := strconv.ParseInt(words[12], 10, 64)
	return time.Duration(user+system) * clockTick, err1 == nil && err2 == nil
}
