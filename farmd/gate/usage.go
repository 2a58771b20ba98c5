package gate

import (
	"context"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"vksplat/farm/pass"
)

// bounds are how much of the server one pass may use.
type bounds struct {
	rate   float64 // requests a second in the long run
	burst  float64 // requests at once
	atOnce int     // requests under way, most of which wait for something
}

// What passes may use. A worker asks some queues for tasks every 3 seconds and reports on tasks; short ones make 500
// requests a second.
var (
	peopleBounds = bounds{rate: 50, burst: 200, atOnce: 50}
	workerBounds = bounds{rate: 1000, burst: 2000, atOnce: 500}
	startBounds  = bounds{rate: 5, burst: 100, atOnce: 20}
	listBounds   = bounds{rate: 10, burst: 50, atOnce: 5} // each reads much of the database
)

// forget is after how long nothing is known of a pass that is not used.
const forget = 10 * time.Minute

// usage counts what passes use.
type usage struct {
	mu    sync.Mutex
	of    map[string]*bucket
	swept time.Time
}

// bucket is the usage of a pass; of its starts there is one more.
type bucket struct {
	bounds
	left    float64
	at      time.Time
	running int
}

// take counts a request, which ends with its context, or refuses it for now: clients try again.
func (u *usage) take(ctx context.Context, who pass.Who, method string) error {
	key, b := who.ID, peopleBounds
	switch {
	case who.Role == pass.Worker:
		b = workerBounds
	case method == "StartWorkflowExecution":
		key, b = who.ID+" starts", startBounds
	case strings.HasPrefix(method, "List"), strings.HasPrefix(method, "Count"):
		key, b = who.ID+" lists", listBounds
	}
	now := time.Now()
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sweep(now)
	own := u.of[key]
	if own == nil {
		own = &bucket{bounds: b, left: b.burst, at: now}
		u.of[key] = own
	}
	own.left = min(own.burst, own.left+own.rate*now.Sub(own.at).Seconds())
	own.at = now
	switch {
	case own.left < 1:
		return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
			"too many requests a second by "+who.Name)
	case own.running >= own.atOnce:
		return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
			"too many requests at once by "+who.Name)
	}
	own.left--
	own.running++
	context.AfterFunc(ctx, func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		own.running--
	})
	return nil
}

// sweep forgets passes that are not used.
func (u *usage) sweep(now time.Time) {
	if u.of == nil {
		u.of = map[string]*bucket{}
	}
	if now.Sub(u.swept) < forget {
		return
	}
	u.swept = now
	for key, b := range u.of {
		if b.running == 0 && now.Sub(b.at) > forget {
			delete(u.of, key)
		}
	}
}
