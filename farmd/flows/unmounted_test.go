package flows

import (
	"context"
	"os"
	"strings"
	"testing"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"vksplat/farm/flow"
)

// TestUnmounted has a job wait for a share that is not mounted on the server, and end at once where the server knows no
// such root.
func TestUnmounted(t *testing.T) {
	r := newRig(t, chain)
	share := r.e.Roots["outputs"].URL
	if err := os.Rename(share, share+".away"); err != nil {
		t.Fatal(err)
	}
	tries := 0
	r.env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		if tries++; tries != 3 {
			return
		}
		if err := os.Rename(share+".away", share); err != nil {
			t.Error(err)
		}
	})
	s, err := r.run(flow.Settings{})
	if err != nil {
		t.Error(err)
	}
	r.want(s, 3, 0, 0, 0)

	r.begin()
	r.e.Roots = nil
	r.e.documents = flow.Documents{} // which has kept the document
	if _, err := r.run(flow.Settings{}); err == nil || !strings.Contains(err.Error(), "no root of this name") {
		t.Errorf("a root that the server does not know: %v", err)
	}
}
