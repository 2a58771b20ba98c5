package task

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// pulse detects whether a silent child works: by the processor time of its process tree, or if that is unknown, by its
// existence.
type pulse struct {
	looked time.Time
	used   time.Duration
}

const (
	pulseEvery = 10 * time.Second
	clockTick  = 10 * time.Millisecond // unit of times in /proc: USER_HZ is 100 wherever Linux shows it to programs
	pulseShare = 100                   // a process that waits takes less than this part of a processor
)

// beats reports whether the process has worked since the last look, at most once in pulseEvery.
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

// processorTime is the processor time of a process tree.
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
		for n := 0; at != pid && at > 1 && n < len(times); n++ { // a reused number may form a cycle
			at = parents[at]
		}
		if at == pid {
			used += spent
		}
	}
	return used, known
}

// readStat reads the numbers of a process and its parent, and the time used by it and its ended children.
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
