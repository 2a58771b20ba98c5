package queue

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"vksplat/scene"
)

// TestExpiredMeanwhile has a write be answered by an outage, then by a conflict, and its key be gone: the writer was halted for so long that what it wrote, or wanted to
// write over, has expired. It has lost to others, and looks anew; a worker's record is then written again.
func TestExpiredMeanwhile(t *testing.T) {
	url := startServer(t, false)
	nc := dial(t, url)
	tries := 0
	answer := func(subject string, with func(*nats.Msg) *nats.Msg) {
		_, err := nc.Subscribe(subject, func(m *nats.Msg) {
			if err := m.RespondMsg(with(m)); err != nil {
				t.Error(err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	answer("$KV.node.>", func(*nats.Msg) *nats.Msg {
		tries++
		text := `{"error":{"code":503,"err_code":10008,"description":"not now"}}`
		if tries > 1 {
			text = `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 0"}}`
		}
		return &nats.Msg{Data: []byte(text)}
	})
	answer("$JS.API.DIRECT.GET.KV_node.>", func(*nats.Msg) *nats.Msg { return &nats.Msg{Header: nats.Header{"Status": {"404"}}} })
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	q, err := attach(dial(t, url), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.nodes.cas(t.Context(), "w", 7, []byte("new")); !errors.Is(err, errConflict) {
		t.Error(err)
	}
	if tries != 2 {
		t.Errorf("%d tries", tries)
	}
}

// TestFailuresNameNoPackages keeps names of packages out of what users read of a task.
func TestFailuresNameNoPackages(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	s.must(s.claim("a").Fail(t.Context(), failure("end lease", "", &scene.Error{Op: "open store", Err: errors.New("away")}, "", nil)))
	if e := s.entry(0); e.Error != "end lease: open store: away" || e.Failures[0].Error != e.Error {
		t.Errorf("%q, %q", e.Error, e.Failures[0].Error)
	}
}
