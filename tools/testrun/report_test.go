package main

import (
	"strings"
	"testing"
)

func report(in string, brief bool) (out string, failed bool, err error) {
	var b strings.Builder
	r := newReporter(&b)
	if err := r.read(strings.NewReader(in)); err != nil {
		return b.String(), true, err
	}
	r.end(brief)
	return b.String(), len(r.failed) > 0, nil
}

const stream = `{"Action":"start","Package":"vksplat/a"}
{"Action":"run","Package":"vksplat/a","Test":"TestGood"}
{"Action":"output","Package":"vksplat/a","Test":"TestGood","Output":"=== RUN   TestGood\n"}
{"Action":"output","Package":"vksplat/a","Test":"TestGood","Output":"chatter\n"}
{"Action":"pass","Package":"vksplat/a","Test":"TestGood"}
{"Action":"output","Package":"vksplat/a","Test":"TestTool","Output":"=== RUN   TestTool\n"}
{"Action":"output","Package":"vksplat/a","Test":"TestTool","Output":"    a_test.go:12: no tool: it is not installed\n"}
{"Action":"output","Package":"vksplat/a","Test":"TestTool","Output":"--- SKIP: TestTool (0.00s)\n"}
{"Action":"skip","Package":"vksplat/a","Test":"TestTool"}
{"Action":"output","Package":"vksplat/a","Output":"PASS\n"}
{"Action":"output","Package":"vksplat/a","Output":"ok  \tvksplat/a\t0.1s\n"}
{"Action":"pass","Package":"vksplat/a"}
`

func TestReport(t *testing.T) {
	out, failed, err := report(stream, false)
	list := "skipped: no tool: it is not installed\n    a TestTool\n"
	want := "ok  \tvksplat/a\t0.1s\n" + list + "1 tests passed, 0 failed, 1 skipped\n"
	if out != want || failed || err != nil {
		t.Errorf("%q, failed %v, %v", out, failed, err)
	}
	want = strings.Replace(want, list, "", 1)
	if out, _, err := report(stream, true); out != want || err != nil {
		t.Errorf("brief: %q, %v", out, err)
	}
}

func TestReportFailures(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"test": {`{"Action":"output","Package":"vksplat/a","Test":"TestBad","Output":"    a_test.go:3: 1, want 2\n"}
{"Action":"fail","Package":"vksplat/a","Test":"TestBad"}
`, "a_test.go:3: 1, want 2\nfailed: a TestBad\n0 tests passed, 1 failed"},
		"crash": {`{"Action":"output","Package":"vksplat/a","Test":"TestBad","Output":"panic: at once\n"}
{"Action":"output","Package":"vksplat/a","Output":"FAIL\tvksplat/a\t0.1s\n"}
{"Action":"fail","Package":"vksplat/a"}
`, "panic: at once\nFAIL\tvksplat/a"},
		"build": {`{"Action":"build-output","ImportPath":"vksplat/a","Output":"a.go:1: syntax error\n"}
{"Action":"fail","Package":"vksplat/a"}
`, "syntax error"},
		"other text": {"not json\n", ""},
	} {
		out, failed, err := report(c.in, false)
		if !failed || !strings.Contains(out, c.want) || (err != nil) != (name == "other text") {
			t.Errorf("%s: %q, failed %v, %v", name, out, failed, err)
		}
	}
}
