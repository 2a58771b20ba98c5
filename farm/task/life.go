package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/scene"
)

// liveRoot is a root whose bytes that are read or written are signs of life: staging and committing large results takes as long as it takes, unless nothing moves.
type liveRoot struct {
	store.Root
	flows func()
}

// attend returns a root of this task, of which is said that it waits for its store, and which soon gives that up when ctx has ended.
func (r *runner) attend(ctx context.Context, root store.Root) store.Root {
	if l, is := root.(liveRoot); is {
		root = l.Root
	}
	r.mutex.Lock()
	r.waiting = "" // nobody has, of what begins
	r.mutex.Unlock()
	return liveRoot{root.Attend(ctx, r.waits), r.flows}
}

// Waiting says that a store is waited for, and why. Of a file only what is wrong: names of those in the making are others each time.
func Waiting(cause error) string {
	var file *fs.PathError
	if errors.As(cause, &file) {
		cause = file.Err
	}
	return "waiting for the store: " + scene.Printable(scene.ErrorText(cause))
}

// waits takes in why the store is waited for, which is a sign of life, or with nil that it answers again.
func (r *runner) waits(cause error) {
	text := ""
	if cause != nil {
		text = Waiting(cause)
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	news := text != r.waiting
	r.waiting = text
	if cause != nil {
		r.now.Life++
	}
	if news && cause != nil && r.log != nil {
		_, _ = io.WriteString(r.log, text+"\n") // a full disk is told by what counts
	}
	r.report(news)
}

// Open implements store.Root.
func (l liveRoot) Open(key string) (io.ReadCloser, error) {
	f, err := l.Root.Open(key)
	if err != nil {
		return nil, err
	}
	return liveReader{f, l.flows}, nil
}

// Put implements store.Root.
func (l liveRoot) Put(key string, write func(io.Writer) error) error {
	return l.Root.Put(key, func(w io.Writer) error { return write(liveWriter{w, l.flows}) })
}

type liveReader struct {
	io.ReadCloser
	flows func()
}

func (l liveReader) Read(p []byte) (n int, err error) {
	if n, err = l.ReadCloser.Read(p); n > 0 {
		l.flows()
	}
	return n, err
}

type liveWriter struct {
	io.Writer
	flows func()
}

func (l liveWriter) Write(p []byte) (n int, err error) {
	if n, err = l.Writer.Write(p); n > 0 {
		l.flows()
	}
	return n, err
}

// waitLook is the time between two looks whether another process fills the cache.
const waitLook = 30 * time.Second

// followCache takes what another process brings into the cache for a sign of life, until done: that one may have the lock of an input for long.
func (r *runner) followCache(done <-chan struct{}) {
	before := int64(-1)
	tick := time.NewTicker(waitLook)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		if now := bytesBelow(r.cacheDir()); now != before {
			before = now
			r.flows()
		}
	}
}

// bytesBelow is the size of all files below a folder.
func bytesBelow(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { // what vanishes meanwhile does not count
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

// isSilent says whether the child prints nothing for as long as it works: only train, demo and render say how far they are.
func (r *runner) isSilent() bool {
	return !r.trains() && r.task.Kind != spec.KindRender && r.task.Kind != spec.KindDemo
}

// pulse feels whether a silent child works: by its processor time, or where the system does not tell that, by its being there.
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
	used, known := ProcessorTime(pid)
	worked := !known || used-p.used >= min(elapsed, time.Hour)/pulseShare
	p.looked, p.used = time.Now(), used
	return worked
}

// ProcessorTime is what a process has used so far.
func ProcessorTime(pid int) (used time.Duration, known bool) {
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
