package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestVacancy has a name be taken from who is silent, by one of those that wait for it.
func TestVacancy(t *testing.T) {
	node := func(home string, revision uint64) record {
		raw, err := json.Marshal(NodeRecord{Home: home})
		if err != nil {
			t.Fatal(err)
		}
		return record{value: raw, revision: revision}
	}
	const most = int(seatPatience/seatLook) + 1 // looks
	dead := node("dead", 5)
	for name, c := range map[string]struct {
		home  string
		looks int // at the dead one's record
		last  record
		free  bool
		taken bool
	}{
		"nobody":                           {"a", 0, record{}, true, false},
		"one that left":                    {"a", 0, record{revision: 7}, true, false},
		"of the same folder":               {"dead", 0, dead, true, false},
		"both without a folder":            {"", 0, node("", 5), false, false},
		"silent, not for long":             {"a", most - 2, dead, false, false},
		"silent":                           {"a", most - 1, dead, true, false},
		"not silent":                       {"a", 3, node("dead", 6), false, true},
		"gone meanwhile":                   {"a", 3, record{}, true, false},
		"silent, then taken by another":    {"a", most, node("b", 6), false, true},
		"silent, then beats after all":     {"a", most - 1, node("dead", 6), false, true},
		"a replica that is behind":         {"a", 3, node("older", 4), false, false},
		"the own folder's, written before": {"b", most, node("b", 6), true, false},
	} {
		v := vacancy{home: c.home}
		for range c.looks {
			if _, err := v.look(dead); err != nil {
				t.Fatal(name, err)
			}
		}
		if free, err := v.look(c.last); free != c.free || errors.Is(err, ErrNameTaken) != c.taken {
			t.Errorf("%s: free %v, %v", name, free, err)
		}
	}
	// Two see that nobody has the name, and the other is first.
	v := vacancy{home: "a"}
	if free, err := v.look(record{}); !free || err != nil {
		t.Error(free, err)
	}
	if _, err := v.look(node("b", 1)); !errors.Is(err, ErrNameTaken) {
		t.Error("who came too late: ", err)
	}
}

// TestHearAuth measures how long ago the server refused the connection by a clock that nobody moves.
func TestHearAuth(t *testing.T) {
	q := &Queue{log: slog.New(slog.DiscardHandler)}
	if q.hearAuth(nats.ErrTimeout) || q.turnedAway.Load() != nil {
		t.Error("a server that is away has refused nothing")
	}
	if !q.hearAuth(fmt.Errorf("again: %w", nats.ErrAuthorization)) {
		t.Fatal("a refusal is none")
	}
	if at := q.turnedAway.Load(); at == nil || !strings.Contains(at.String(), " m=") {
		t.Errorf("%v has no monotonic reading", at)
	}
}
