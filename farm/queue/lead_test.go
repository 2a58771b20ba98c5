package queue

import (
	"errors"
	"testing"
)

// TestOwnKey has a reconciler find its own key, renewed by a request whose answer it did not get: it is elected at once, while another's is respected, unless that is known to be dead.
func TestOwnKey(t *testing.T) {
	q := newSteps(t, Task{Name: "a"}).q
	me, other := []byte(`{"name":"a","term":"x"}`), []byte(`{"name":"b","term":"y"}`)
	first, err := q.campaign(t.Context(), me, &rival{})
	if err != nil {
		t.Fatal(err)
	}
	if err := q.lead.put(t.Context(), leadKey, me); err != nil {
		t.Fatal(err)
	}
	if again, err := q.campaign(t.Context(), me, &rival{}); err != nil || again <= first+1 {
		t.Errorf("elected at revision %d after %d: %v", again, first, err)
	}
	if _, err := q.campaign(t.Context(), other, &rival{}); !errors.Is(err, errConflict) {
		t.Errorf("a second one: %v", err)
	}
	if _, err := q.campaign(t.Context(), other, &rival{dead: "b"}); !errors.Is(err, errConflict) {
		t.Errorf("one that knows of another's death: %v", err)
	}
	if _, err := q.campaign(t.Context(), other, &rival{dead: "a"}); err != nil {
		t.Errorf("after the death of the first: %v", err)
	}
}
