package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// limit sets the farm's limits.
func (f *farm) limit(limits queue.Limits) {
	f.t.Helper()
	_, err := f.admin.ChangeLimits(f.t.Context(), func(l *queue.Limits) error {
		*l = limits
		return nil
	})
	f.must(err)
}

// TestLimitsOfSeveralPools has pools that count together, whose names are no words of a subject, and tasks that go before older ones of lower priority.
func TestLimitsOfSeveralPools(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	f.worker = f.join("two", "x.y", "x.y+gpu", "*")
	f.must(f.admin.Drain(ctx, "one", false))
	f.limit(queue.Limits{Pools: map[string]int{"x.y": 2}})
	plan := queue.JobPlan{Name: "j"}
	for i := range 3 {
		plan.Tasks = append(plan.Tasks, queue.Task{Name: fmt.Sprint("p", i), Pool: "x.y"}, queue.Task{Name: fmt.Sprint("g", i), Pool: "x.y+gpu", Limit: "x.y"})
	}
	plan.Tasks = append(plan.Tasks, queue.Task{Name: "star", Pool: "*"}, queue.Task{Name: "urgent", Pool: "x.y", Priority: queue.High})
	f.submit(plan)
	f.called(3)
	urgent := f.claim("urgent")
	f.claim("p0")
	f.claim("star")
	f.nothing()
	f.must(urgent.Succeed(ctx, "m"))
	f.claim("g0")
	f.nothing()
}

// TestOrdersAtOnce has many change the limits, and the order of a node, at the same time: nothing is lost.
func TestOrdersAtOnce(t *testing.T) {
	f := newFarm(t)
	ctx := t.Context()
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			_, err := f.admin.ChangeLimits(ctx, func(l *queue.Limits) error {
				if l.Users == nil {
					l.Users = map[string]int{}
				}
				l.Users[fmt.Sprint("user", i)] = i
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if limits, err := f.admin.Limits(ctx); err != nil || len(limits.Users) != 8 {
		t.Errorf("%v, %v", limits, err)
	}
	if _, err := f.admin.ChangeLimits(ctx, func(l *queue.Limits) error { l.Users["ann"] = -1; return nil }); !errors.Is(err, scene.ErrUsage) {
		t.Errorf("a limit below zero: %v", err)
	}
}

// quarantined waits until the worker is in quarantine.
func (f *farm) quarantined(why string) {
	f.t.Helper()
	var err error
	for end := time.Now().Add(patience); !errors.Is(err, queue.ErrQuarantined) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		short, cancel := context.WithTimeout(f.t.Context(), 20*time.Millisecond)
		_, err = f.worker.Claim(short, queue.Slot{})
		cancel()
	}
	nodes, listErr := f.user.Nodes(f.t.Context())
	f.must(listErr)
	if !errors.Is(err, queue.ErrQuarantined) || len(nodes) != 1 || !strings.Contains(nodes[0].Quarantine, why) {
		f.t.Fatal(err, nodes)
	}
}
