package load_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/inspect"
)

// inspected gives what inspection finds in a capture, without its pixels.
func inspected(t *testing.T, c *scene.Capture) *inspect.Report {
	t.Helper()
	r := must.Get(inspect.Capture(context.Background(), c, inspect.Options{Coverage: true}))(t)
	return r
}

func problem(r *inspect.Report, code string) (inspect.Problem, bool) {
	i := slices.IndexFunc(r.Problems, func(p inspect.Problem) bool { return p.Code == code })
	if i < 0 {
		return inspect.Problem{}, false
	}
	return r.Problems[i], true
}

// readTestdata reads a photo of package photo's tests.
func readTestdata(t testing.TB, name string) []byte {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join("..", "photo", "testdata", name)))(t)
	return data
}
