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
	Lacks    []string `json:"lacks,omitempty"`           // kinds of tasks that it cannot do, for want of a program
	DiskFree int64    `json:"disk_free_bytes,omitempty"` // in its work folder, where that is known
	Version  string   `json:"version,omitempty"`
	Tasks    []string `json:"tasks,omitempty"` // whose leases it holds: job/task
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
	order, err := q.order(ctx, node)
	if err == nil {
		change(&order)
		err = q.putControl(ctx, orderKey(node), order)
	}
	if err != nil {
		return failure(op, node, err, "", scene.ErrTryAgain)
	}
	q.log.Info("node ordered", "node", node, "drain", order.Drain, "now", order.Now, "quarantine", order.Quarantine)
	return nil
}

func (q *Queue) putControl(ctx context.Context, key string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return q.ctl.put(ctx, key, raw)
}

// Limits bound how many tasks run, or wait in front of workers, at once. The name "*" is for all that are not named.
type Limits struct {
	Users map[string]int `json:"users,omitempty"` // by Owner
	Pools map[string]int `json:"pools,omitempty"`
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

// SetLimits replaces the farm's limits. What runs goes on.
func (q *Queue) SetLimits(ctx context.Context, limits Limits) error {
	for _, limit := range []map[string]int{limits.Users, limits.Pools} {
		for name, n := range limit {
			if n < 0 {
				return failure("set limits", "", fmt.Errorf("%d for %q is below zero", n, name), "", scene.ErrUsage)
			}
		}
	}
	if err := q.putControl(ctx, limitsKey, limits); err != nil {
		return failure("set limits", "", err, "", scene.ErrTryAgain)
	}
	return nil
}

// allows says whether one more may run where n do.
func allows(limits map[string]int, name string, n int) bool {
	limit, ok := limits[name]
	if !ok {
		limit, ok = limits["*"]
	}
	return !ok || n < limit
}
