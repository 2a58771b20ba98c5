package gate

import (
	"fmt"
	"maps"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
)

// Bounds on names of queues that people and machines choose: of devices and drivers, and of pools in documents.
// Temporal makes a queue of any name that it is asked about: up to 0.25 MB of memory while it is used, and a row of
// the database for good.
const (
	MaxNames    = 256  // brought by a pass in a pool, or an owner's jobs; a machine with sixteen devices has 67
	MaxAllNames = 4096 // of the server
)

// nameLasts is after how long a name that nobody uses is forgotten.
const nameLasts = 24 * time.Hour

// names are the queues in use.
type names struct {
	mu    sync.Mutex
	used  map[string]time.Time            // by queue: when it was asked for last
	of    map[string]map[string]time.Time // the same of names that count, by who brought them
	swept time.Time
}

// use notes that somebody uses a queue. A new name that counts is refused where who brings it, or all, have too many.
func (n *names) use(who, queue string, counts bool) error {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sweep(now)
	_, shared := n.used[queue]
	own := n.of[who]
	if _, known := own[queue]; counts && (known || !shared) {
		switch {
		case !known && len(own) >= MaxNames:
			return refuse("%s uses more than %d names of pools and devices in a day", who, MaxNames)
		case !shared && len(n.used) >= MaxAllNames:
			return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
				fmt.Sprintf("the farm uses more than %d names of pools and devices in a day", MaxAllNames))
		case own == nil:
			own = map[string]time.Time{}
			n.of[who] = own
		}
		own[queue] = now
	}
	n.used[queue] = now
	return nil
}

// has says whether somebody uses a queue.
func (n *names) has(queue string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.used[queue].IsZero()
}

// sweep forgets names that nobody uses.
func (n *names) sweep(now time.Time) {
	if n.used == nil {
		n.used, n.of = map[string]time.Time{}, map[string]map[string]time.Time{}
	}
	if now.Sub(n.swept) < nameLasts/100 {
		return
	}
	n.swept = now
	old := func(_ string, at time.Time) bool { return now.Sub(at) > nameLasts }
	maps.DeleteFunc(n.used, old)
	for who, own := range n.of {
		if maps.DeleteFunc(own, old); len(own) == 0 {
			delete(n.of, who)
		}
	}
}

// Admit counts the queues that a job of an owner is to use.
func (g *Gate) Admit(owner string, queues []string) error {
	for _, q := range queues {
		if err := g.names.use("jobs of "+owner, q, true); err != nil {
			return err
		}
	}
	return nil
}
