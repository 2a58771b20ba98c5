package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vksplat/scene"
)

// NodeRecord is what KV node holds of a node.
type NodeRecord struct {
	Format   int      `json:"format"`
	Node     string   `json:"node"`
	Home     string   `json:"home,omitempty"`  // see WorkerInfo
	Claim    string   `json:"claim,omitempty"` // unique to the worker that wrote it
	Pools    []string `json:"pools"`
	Devices  []string `json:"devices,omitempty"`
	Roots    []string `json:"roots,omitempty"`           // of the store that it knows
	Lacks    []string `json:"lacks,omitempty"`           // kinds of tasks that it cannot do, for want of a program, and roots that it cannot use for now
	DiskFree int64    `json:"disk_free_bytes,omitempty"` // in its work folder, where that is known
	Version  string   `json:"version,omitempty"`
	Tasks    []string `json:"tasks,omitempty"` // whose leases it holds: job/task

	Use []DeviceUse `json:"use,omitempty"` // of its devices
}

// DeviceUse is what a device of a node does, as it was at the last heartbeat.
type DeviceUse struct {
	Device string   `json:"device"` // UUID or PCI address
	Name   string   `json:"name"`
	Busy   *float64 `json:"busy,omitempty"`         // share of the time, 0 to 1; nil: not known
	Bytes  int64    `json:"memory_bytes,omitempty"` // of its memory that is taken, 0: not known
	Budget int64    `json:"budget_bytes,omitempty"` // of those that there may be
	Job    string   `json:"job,omitempty"`          // whose task it works on, "": none
	Task   string   `json:"task,omitempty"`
	Index  int      `json:"index,omitempty"` // of the task
	Step   int64    `json:"step,omitempty"`
	Of     int64    `json:"of,omitempty"`
	Rate   float64  `json:"rate,omitempty"` // steps a second
	Unit   string   `json:"unit,omitempty"` // what steps are
}

// NodeStatus is a node as tables show it. A node that fell silent is not listed any more after half a minute.
type NodeStatus struct {
	NodeRecord
	Order
	Heartbeat time.Time `json:"heartbeat"`
}

// Nodes returns the nodes that live, by name.
func (q *Queue) Nodes(ctx context.Context) ([]NodeStatus, error) {
	var nodes []NodeStatus
	var bad error
	_, err := q.nodes.scan(ctx, "*", 0, func(r record) {
		if len(r.value) == 0 {
			return // it left
		}
		node := NodeStatus{Heartbeat: r.at}
		bad = errors.Join(bad, json.Unmarshal(r.value, &node.NodeRecord))
		nodes = append(nodes, node)
	})
	if err = errors.Join(err, bad); err != nil {
		return nil, failure("list nodes", "", err, "", scene.ErrTryAgain)
	}
	for i := range nodes {
		if nodes[i].Order, err = q.order(ctx, nodes[i].Node); err != nil {
			return nil, failure("list nodes", nodes[i].Node, err, "", scene.ErrTryAgain)
		}
	}
	slices.SortFunc(nodes, func(a, b NodeStatus) int { return strings.Compare(a.Node, b.Node) })
	return nodes, nil
}

// KnowsNode says whether a node is there, or has an order that was given while it was.
func (q *Queue) KnowsNode(ctx context.Context, node string) (bool, error) {
	for _, at := range []struct {
		bucket
		key string
	}{{q.nodes, tokenOf(node)}, {q.ctl, orderKey(node)}} {
		value, _, err := at.get(ctx, at.key)
		if err == nil && len(value) > 0 {
			return true, nil
		}
		if err != nil && !errors.Is(err, errAbsent) {
			return false, failure("look for node", node, err, "", scene.ErrTryAgain)
		}
	}
	return false, nil
}

// Drain keeps a node from claiming; with now it also hands back what it runs.
func (q *Queue) Drain(ctx context.Context, node string, now bool) error {
	return q.setOrder(ctx, "drain node", node, func(o *Order) { o.Drain, o.Now = true, now })
}

// Undrain lets a node claim again, and ends its quarantine.
func (q *Queue) Undrain(ctx context.Context, node string) error {
	return q.setOrder(ctx, "let node work", node, func(o *Order) { *o = Order{} })
}

func orderKey(node string) string { return "node." + tokenOf(node) }

func (q *Queue) order(ctx context.Context, node string) (order Order, err error) {
	raw, _, err := q.ctl.get(ctx, orderKey(node))
	if errors.Is(err, errAbsent) {
		return order, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &order)
	}
	return order, err
}

func (q *Queue) setOrder(ctx context.Context, op, node string, change func(*Order)) error {
	if !isName(node) {
		return failure(op, node, errors.New("this is no name of a node"), "", scene.ErrUsage)
	}
	var order Order
	err := updateControl(ctx, q, orderKey(node), func(old *Order) error {
		change(old)
		order = *old
		return nil
	})
	if err != nil {
		return failure(op, node, err, "", scene.ErrTryAgain)
	}
	q.log.Info("node ordered", "node", node, "drain", order.Drain, "now", order.Now, "quarantine", order.Quarantine)
	return nil
}

// updateControl changes a value of KV ctl by compare-and-set: what several want at once all comes to pass. An absent one is zero.
func updateControl[T any](ctx context.Context, q *Queue, key string, change func(*T) error) error {
	for {
		var value T
		raw, revision, err := q.ctl.get(ctx, key)
		if err == nil {
			err = json.Unmarshal(raw, &value)
		} else if errors.Is(err, errAbsent) {
			err = nil
		}
		if err == nil {
			err = change(&value)
		}
		if err != nil {
			return err
		}
		if raw, err = json.Marshal(value); err != nil {
			return err
		}
		if _, err = q.ctl.cas(ctx, key, revision, raw); !errors.Is(err, errConflict) {
			return err
		}
	}
}

// Limits bound how many tasks run, or wait in front of workers, at once. The name "*" is for all that are not named.
type Limits struct {
	Users map[string]int `json:"users,omitempty"` // by Owner
	Pools map[string]int `json:"pools,omitempty"` // by Task.Limit
}

const limitsKey = "limits"

// Limits returns the farm's limits.
func (q *Queue) Limits(ctx context.Context) (limits Limits, err error) {
	raw, _, err := q.ctl.get(ctx, limitsKey)
	if errors.Is(err, errAbsent) {
		return limits, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, &limits)
	}
	if err != nil {
		err = failure("read limits", "", err, "", scene.ErrTryAgain)
	}
	return limits, err
}

// ChangeLimits changes the farm's limits, and returns them. What runs goes on.
func (q *Queue) ChangeLimits(ctx context.Context, change func(*Limits) error) (limits Limits, err error) {
	err = updateControl(ctx, q, limitsKey, func(old *Limits) error {
		if err := change(old); err != nil {
			return err
		}
		for _, limit := range []map[string]int{old.Users, old.Pools} {
			for name, n := range limit {
				if n < 0 {
					return failure("set limits", "", fmt.Errorf("%d for %q is below zero", n, name), "", scene.ErrUsage)
				}
			}
		}
		limits = *old
		return nil
	})
	var known *scene.Error
	if err != nil && !errors.As(err, &known) {
		err = failure("set limits", "", err, "", scene.ErrTryAgain)
	}
	return limits, err
}

// allows says whether one more may run where n do.
func allows(limits map[string]int, name string, n int) bool {
	limit, ok := limits[name]
	if !ok {
		limit, ok = limits["*"]
	}
	return !ok || n < limit
}
