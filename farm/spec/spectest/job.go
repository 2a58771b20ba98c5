// Package spectest reads and plans the jobs of tests.
package spectest

import (
	"testing"

	"vksplat/farm/spec"
)

// Job reads a document and plans its tasks.
func Job(t testing.TB, doc string) (*spec.Job, *spec.Plan) {
	t.Helper()
	j, err := spec.Parse("job.toml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	p, err := j.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return j, p
}
