// Package spectest reads and plans the jobs of tests.
package spectest

import (
	"testing"

	"vksplat/farm/spec"
	must "vksplat/internal/musttest"
)

// Job reads a document and plans its tasks.
func Job(t testing.TB, doc string) (*spec.Job, *spec.Plan) {
	t.Helper()
	j := must.Get(spec.Parse("job.toml", []byte(doc)))(t)
	p := must.Get(j.Plan())(t)
	return j, p
}
