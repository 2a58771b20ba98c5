package main

import (
	"strings"
	"testing"
)

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
	var out strings.Builder
	failed, err := report(strings.NewReader(stream), &out, false)
	list := "skipped: no tool: it is not installed\n    a TestTool\n"
	want := "ok  \tvksplat/a\t0.1s\n" + list + "1 tests passed, 0 failed, 1 skipped\n"
	if out.String() != want || failed || err != nil {
		t.Errorf("%q, failed %v, %v", out.String(), failed, err)
	}
	out.Reset()
	want = strings.Replace(want, list, "", 1)
	if _, err := report(strings.NewReader(stream), &out, true); out.String() != want || err != nil {
		t.Errorf("brief: %q, %v", out.String(), err)
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
		var out strings.Builder
		failed, err := report(strings.NewReader(c.in), &out, false)
		if !failed || !strings.Contains(out.String(), c.want) || (err != nil) != (name == "other text") {
			t.Errorf("%s: %q, failed %v, %v", name, out.String(), failed, err)
		}
	}
}
