package queue

import (
	"strings"
	"time"
)

// estimator knows how long tasks of a job take, by the beginning of their names: those of one entry of the document are alike.
type estimator struct{ groups map[string]*took }

// took is how long tasks take, whole. Times are in seconds here: sums of what is guessed may be longer than a time.Duration.
type took struct {
	sum float64
	n   float64
}

func groupOf(name string) string {
	group, _, _ := strings.Cut(name, "/")
	return group
}

// outlook fills in how fast a job is and how long it will take, at the number of tasks that run now.
func (b *board) outlook(job *JobStatus) {
	job.Left, job.More, job.Rates = 0, false, nil
	e := estimator{groups: map[string]*took{}}
	running := 0.0
	for i := range b.cells {
		c := &b.cells[i]
		if c.state == Running || c.state == Verifying {
			running++
		}
		switch rest, known := c.left(); {
		case c.entry == nil:
		case c.state == Succeeded && c.entry.Took > 0:
			e.add(b.tasks[i].Name, seconds(c.entry.Took))
		case known:
			e.add(b.tasks[i].Name, seconds(c.entry.Took)+rest)
		}
		if c.state == Running && c.entry.Rate > 0 && c.entry.Unit != "" {
			if job.Rates == nil {
				job.Rates = map[string]float64{}
			}
			job.Rates[c.entry.Unit] += c.entry.Rate
		}
	}
	if running == 0 {
		return
	}
	var longest, sum float64
	for i := range b.cells {
		rest, known := e.open(&b.cells[i], b.tasks[i].Name)
		sum += rest
		job.More = job.More || !known
		if b.cells[i].state == Running {
			longest = max(longest, rest)
		}
	}
	job.Left = span(max(longest, sum/running))
}

func (e *estimator) add(name string, seconds float64) {
	group := e.groups[groupOf(name)]
	if group == nil {
		group = &took{}
		e.groups[groupOf(name)] = group
	}
	group.sum, group.n = group.sum+seconds, group.n+1
}

// open guesses what a task that has not ended will take; of the first of its kind nothing is known.
func (e *estimator) open(c *cell, name string) (left float64, known bool) {
	if c.state.Ended() || c.state == Verifying || c.state == Canceling {
		return 0, true
	}
	if rest, known := c.left(); known {
		return rest, true
	}
	group := e.groups[groupOf(name)]
	if group == nil {
		return 0, false
	}
	whole := group.sum / group.n
	if c.state == Running {
		whole = max(whole-seconds(c.entry.Took), 0)
	}
	return whole, true
}

// left is how long a running attempt will take until its last step; known says whether anything tells.
func (c *cell) left() (left float64, known bool) {
	e := c.entry
	if c.state != Running || e.Of <= 0 || e.Step < 0 {
		return 0, false
	}
	rate := e.Rate
	if !(rate > 0) && e.Step > 0 && e.Took > 0 {
		rate = float64(e.Step) / seconds(e.Took)
	}
	if !(rate > 0) {
		return 0, false
	}
	return min(float64(max(e.Of-e.Step, 0))/rate, longestLeft.Seconds()), true
}

// longestLeft bounds what is guessed.
const longestLeft = 10 * 365 * 24 * time.Hour

func seconds(d Duration) float64 { return time.Duration(d).Seconds() }

// span is a time in seconds as others get it.
func span(seconds float64) Duration {
	return Duration(time.Duration(min(seconds, longestLeft.Seconds())) * time.Second)
}
