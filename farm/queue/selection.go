package queue

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Frames are the numbers First, First+Step, ... up to Last.
type Frames struct {
	First int `json:"first"`
	Last  int `json:"last"`
	Step  int `json:"step"`
}

var framesPattern = regexp.MustCompile(`^(\d{1,9})(?:-(\d{1,9}))?(?:x(\d{1,9}))?$`)

// ParseFrames reads "1001", "1001-1100" or "1001-1100x2".
func ParseFrames(s string) (Frames, error) {
	m := framesPattern.FindStringSubmatch(s)
	if m == nil {
		return Frames{}, fmt.Errorf("%q is no range of frames like 1001-1100 or 1001-1100x2", s)
	}
	f := Frames{Step: 1}
	f.First, _ = strconv.Atoi(m[1]) // nine digits always fit
	f.Last = f.First
	if m[2] != "" {
		f.Last, _ = strconv.Atoi(m[2])
	}
	if m[3] != "" {
		f.Step, _ = strconv.Atoi(m[3])
	}
	if f.Last < f.First || f.Step < 1 {
		return Frames{}, fmt.Errorf("%q holds no frames", s)
	}
	return f, nil
}

// meets says whether some number is in both.
func (f Frames) meets(g Frames) bool {
	n := f.First
	if n < g.First { // the first of f that g could hold
		n += (g.First - n + f.Step - 1) / f.Step * f.Step
	}
	for range g.Step { // then remainders repeat
		if n > min(f.Last, g.Last) {
			return false
		}
		if (n-g.First)%g.Step == 0 {
			return true
		}
		n += f.Step
	}
	return false
}

func (s Selection) all() bool { return len(s.Tasks) == 0 && s.Frames == nil }

// of lists the selected tasks. A selection that selects nothing is a mistake.
func (s Selection) of(b *board) ([]int, error) {
	var tasks []int
	used := make([]bool, len(s.Tasks))
	for i := range b.tasks {
		name := b.tasks[i].Name
		at := slices.IndexFunc(s.Tasks, func(t string) bool { return name == t || strings.HasPrefix(name, t+"/") })
		if at < 0 && len(s.Tasks) > 0 {
			continue
		}
		if at >= 0 {
			used[at] = true
		}
		if s.Frames != nil {
			frames, err := ParseFrames(name[strings.LastIndexByte(name, '/')+1:])
			if err != nil || !s.Frames.meets(frames) {
				continue
			}
		}
		tasks = append(tasks, i)
	}
	if at := slices.Index(used, false); at >= 0 {
		return nil, fmt.Errorf("%w: %q", ErrNoTask, s.Tasks[at])
	}
	if len(tasks) == 0 {
		return nil, fmt.Errorf("%w: none draws any of these frames", ErrNoTask)
	}
	return tasks, nil
}
