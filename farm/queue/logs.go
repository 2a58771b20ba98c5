package queue

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"vksplat/scene"
)

// LogLine is something a task printed.
type LogLine struct {
	Index   int       `json:"index"`
	Attempt int       `json:"attempt"`
	Text    string    `json:"text"`
	At      time.Time `json:"at"` // the server's clock
}

const maxLine = 16 << 10

// Log stores a line of the task's output for a week. Lines may get lost while the server is away: the store keeps the whole log.
func (l *Lease) Log(text string) {
	line := LogLine{Index: l.Index, Attempt: l.Attempt, Text: text[:min(len(text), maxLine)]}
	if raw, err := json.Marshal(line); err == nil {
		_ = l.w.q.nc.Publish("log."+entryKey(l.Job, l.Index), raw) // lossy by design
	}
}

// Logs calls fn for the lines of a task of a job, of all its tasks if index is below zero, in the order of writing. With until, nil for not at all, it goes on with what
// is said from now on until that is closed, whose lines of before then it has, until the context ends, or until fn returns an error, which Logs returns.
func (q *Queue) Logs(ctx context.Context, job string, index int, until <-chan struct{}, fn func(LogLine) error) error {
	filter := tokenOf(job) + ".*"
	if index >= 0 {
		filter = entryKey(job, index)
	}
	told := make(chan struct{}, 1)
	if until != nil {
		stop, err := q.tell(told, nil, "log."+filter)
		if err != nil {
			return failure("read logs", job, err, "", scene.ErrTryAgain)
		}
		defer stop()
		over := make(chan struct{})
		defer close(over)
		go func() {
			select {
			case <-until:
				select {
				case told <- struct{}{}:
				default:
				}
			case <-over:
			}
		}()
	}
	var next uint64
	for {
		last := until == nil
		select {
		case <-until: // what follows reads to the end
			last = true
		default:
		}
		var ended, bad error
		var err error
		next, err = q.logs.scan(ctx, filter, next, func(r record) {
			if ended == nil && bad == nil {
				ended, bad = show(r, fn)
			}
		})
		if ended != nil {
			return ended
		}
		if err = errors.Join(err, bad); err != nil {
			return failure("read logs", job, err, "", scene.ErrTryAgain)
		}
		if last {
			return nil
		}
		if err := wait(ctx, told, lookOver); err != nil {
			return err
		}
	}
}

func show(r record, fn func(LogLine) error) (ended, bad error) {
	line := LogLine{At: r.at}
	if err := json.Unmarshal(r.value, &line); err != nil {
		return nil, err
	}
	line.At = r.at
	var err error
	if line.Index, err = strconv.Atoi(r.key[strings.LastIndexByte(r.key, '.')+1:]); err != nil {
		return nil, err
	}
	return fn(line), nil
}
