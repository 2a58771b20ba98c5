package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"vksplat/farm/queue"
	"vksplat/view"
)

// fake is a farm of one job with a task in every state, one node, and a name that wants to be markup.
type fake struct{ away bool }

const wild = `<b>größe</b> "&'` + "`"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (f *fake) job() (queue.JobStatus, []queue.TaskStatus) {
	j := queue.JobStatus{Head: queue.Head{Name: wild, Owner: "ann", Tasks: 1000 + len(queue.States)}, State: queue.JobActive, Counts: map[queue.State]int{}, Submitted: start, Left: queue.Duration(90 * time.Minute), More: true, Rates: map[string]float64{"steps": 12.5, "pictures": 0.5}}
	var tasks []queue.TaskStatus
	for i := range j.Tasks {
		s := queue.Queued
		if i < len(queue.States) {
			s = queue.States[i]
		}
		j.Counts[s]++
		t := queue.TaskStatus{Job: wild, Index: i, Name: fmt.Sprintf("task/%04d", i), State: s, Changed: start}
		if s == queue.Running {
			t.Entry = queue.Entry{Attempt: 2, Node: "node1", Step: 50, Of: 400, Rate: 12.5, Unit: "steps", Message: "train"}
			t.Left = queue.Duration(28 * time.Second)
		}
		if s == queue.Failed {
			t.Entry = queue.Entry{Attempt: 4, Error: "<script>alert(1)</script>" + strings.Repeat("long", 50), Node: strings.Repeat("n", 63)}
		}
		tasks = append(tasks, t)
	}
	return j, tasks
}

func (f *fake) List(context.Context) ([]queue.JobStatus, error) {
	if f.away {
		return nil, fmt.Errorf("the server is away")
	}
	j, _ := f.job()
	return []queue.JobStatus{j}, nil
}

func (f *fake) Show(_ context.Context, job string) (queue.JobStatus, []queue.TaskStatus, error) {
	if job != wild {
		return queue.JobStatus{}, nil, queue.ErrNoJob
	}
	j, tasks := f.job()
	return j, tasks, nil
}

func (f *fake) Nodes(context.Context) ([]queue.NodeStatus, error) {
	return []queue.NodeStatus{
		{NodeRecord: queue.NodeRecord{Node: "node1", Devices: []string{"gpu-a", "gpu-b"}, Pools: []string{"any", "any+gpu", "big"}, Tasks: []string{"x/task/0002"}, Version: "1\"\\\n\xff", Use: []queue.DeviceUse{
			{Device: "b", Name: "Card B", Budget: 8 << 30},
			{Device: "a", Name: "Card <A>", Busy: &half, Bytes: 3 << 30, Budget: 24 << 30, Job: wild, Task: "task/0002", Index: 2, Step: 50, Of: 400, Rate: 12.5, Unit: "steps"},
		}}, Heartbeat: start},
		{NodeRecord: queue.NodeRecord{Node: "node2"}, Order: queue.Order{Quarantine: "three tasks failed"}, Heartbeat: start}}, nil
}

func (f *fake) Logs(_ context.Context, _ string, index int, _ <-chan struct{}, fn func(queue.LogLine) error) error {
	for i := range 3*logLines + 7 {
		if err := fn(queue.LogLine{Index: index, Text: fmt.Sprintf("line <%d>", i), At: start}); err != nil {
			return err
		}
	}
	return nil
}

var half = 0.5

// previews of the tasks 2 to 6: a good one, and what no browser gets.
var previews = map[int][]byte{2: aJPEG(64, 48), 3: []byte("<svg onload=alert(1)>"), 4: append(aJPEG(8, 8), make([]byte, queue.MaxPreview)...), 5: aJPEG(3000, 2), 6: []byte("\x89PNG\r\n\x1a\n")}

func aJPEG(width, height int) []byte {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, width, height)), nil); err != nil {
		panic(err) // not of a buffer
	}
	return b.Bytes()
}

func (f *fake) Previews(_ context.Context, job string) (map[int]bool, error) {
	has := map[int]bool{}
	for i := range previews {
		has[i] = job == wild
	}
	return has, nil
}

func (f *fake) Preview(_ context.Context, job string, index int) ([]byte, error) {
	if job != wild {
		return nil, nil
	}
	return previews[index], nil
}

func onePicture(_ context.Context, job, task string) ([]byte, error) {
	if job == wild && task == "task/0004" {
		return []byte("\x89PNG\r\n\x1a\n"), nil
	}
	return nil, nil
}

// browser opens the pages as a browser does: by the address with the token, then by the cookie.
func browser(t *testing.T, farm Farm) (get func(path string) (int, string), base string) {
	t.Helper()
	s, err := view.Listen(view.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := Show(s, farm, onePicture); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	fetch := func(address string) (int, string) {
		r, err := client.Get(address)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s has the policy %q", address, r.Header.Get("Content-Security-Policy"))
		}
		return r.StatusCode, string(body)
	}
	_, entry := fetch(s.URL())
	_, rest, _ := strings.Cut(entry, "url=")
	prefix, _, _ := strings.Cut(rest, `"`)
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	base = u.Scheme + "://" + u.Host + prefix
	return func(path string) (int, string) { return fetch(base + path) }, base
}

func TestPages(t *testing.T) {
	get, base := browser(t, &fake{})
	name := url.QueryEscape(wild)
	for _, c := range []struct {
		path   string
		status int
		has    []string
		hasNot []string
	}{
		{"", 200, []string{"1 job, 2 nodes with 2 devices, 1 task running", "&lt;b&gt;größe", "1/1010", "quarantine", `href="job?name=%3cb%3e`,
			"0.5 pictures/s, 12 steps/s", "over 1 h 30 min", "Card &lt;A&gt;", "50 %", "3.0 GiB of 24.0 GiB", "50/400 steps", "28 s left", `src="preview?job=%3cb%3e`, "idle", "any, big"}, []string{wild, "<b>größe", "any+gpu"}},
		{"job?name=" + name, 200, []string{"task/0000", "task/0099", "50/400", "12 steps/s", "28 s", "&lt;script&gt;", "from=100", " 1001</a>", `&amp;task=2" alt`}, []string{"task/0100", "<script>", "previous"}},
		{"job?name=" + name + "&from=1000", 200, []string{"task/1009", "previous", "from=900"}, []string{"task/0999", "next"}},
		{"job?name=" + name + "&from=99999999", 200, []string{"task/1009"}, nil},
		{"job?name=" + name + "&state=failed", 200, []string{"task/0007"}, []string{"task/0000", "task/0002"}},
		{"job?name=" + name + "&state=nothing", 200, nil, []string{"task/0000"}},
		{"job?name=other", 404, nil, nil},
		{"log?job=" + name + "&task=2", 200, []string{"line &lt;1506&gt;", "line &lt;1007&gt;", "Attempt 2 on node1", `src="preview?job=%3cb%3e`, "12 steps/s", "50 %"}, []string{"line &lt;1006&gt;", `src="picture`}},
		{"log?job=" + name + "&task=7", 200, []string{"task/0007"}, []string{"<img", "GPU"}},
		{"log?job=" + name + "&task=4", 200, []string{`src="picture?job=%3cb%3e`}, []string{`src="preview`}},
		{"log?job=" + name + "&task=99999", 404, nil, nil},
		{"log?job=" + name + "&task=x", 404, nil, nil},
		{"picture?job=" + name + "&name=task/0004", 200, []string{"PNG"}, nil},
		{"preview?job=" + name + "&task=2", 200, []string{"\xff\xd8\xff"}, nil},
		{"preview?job=" + name + "&task=3", 404, nil, []string{"svg"}},
		{"preview?job=" + name + "&task=4", 404, nil, []string{"\xff\xd8\xff"}},
		{"preview?job=" + name + "&task=5", 404, nil, []string{"\xff\xd8\xff"}},
		{"preview?job=" + name + "&task=6", 404, nil, []string{"PNG"}},
		{"preview?job=" + name + "&task=7", 404, nil, nil},
		{"preview?job=" + name + "&task=-1", 404, nil, nil},
		{"preview?job=" + name + "&task=x", 404, nil, nil},
		{"preview?job=other&task=2", 404, nil, nil},
		{"picture?job=" + name + "&name=task/0003", 404, nil, nil},
		{"page.css", 200, []string{"progress"}, nil},
		{"nothing", 404, nil, nil},
	} {
		status, body := get(c.path)
		if status != c.status {
			t.Errorf("%s: status %d, want %d", c.path, status, c.status)
		}
		for _, text := range c.has {
			if !strings.Contains(body, text) {
				t.Errorf("%s has no %q:\n%.3000s", c.path, text, body)
			}
		}
		for _, text := range c.hasNot {
			if strings.Contains(body, text) {
				t.Errorf("%s has %q", c.path, text)
			}
		}
	}
	r, err := http.Get(base)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Body.Close()
	if r.StatusCode != http.StatusForbidden {
		t.Errorf("without a token: %s", r.Status)
	}
	away, _ := browser(t, &fake{away: true})
	if status, body := away(""); status != http.StatusServiceUnavailable || !strings.Contains(body, "away") {
		t.Errorf("a farm that is away: %d %s", status, body)
	}
}

// TestPreviewHeaders wants a picture to be sent once, and to be taken for a picture.
func TestPreviewHeaders(t *testing.T) {
	p := &pages{farm: &fake{}, now: time.Now}
	ask := func(tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "/preview?task=2&job="+url.QueryEscape(wild), nil)
		r.Header.Set("If-None-Match", tag)
		w := httptest.NewRecorder()
		p.servePreview(w, r)
		return w
	}
	first := ask("")
	if first.Code != http.StatusOK || first.Header().Get("Content-Type") != "image/jpeg" || !bytes.Equal(first.Body.Bytes(), previews[2]) || first.Header().Get("Cache-Control") != "private, no-cache" {
		t.Errorf("%d %v", first.Code, first.Header())
	}
	if again := ask(first.Header().Get("Etag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("again: %d", again.Code)
	}
}

// TestWords looks at numbers as they are read.
func TestWords(t *testing.T) {
	for got, want := range map[string]string{
		RateText(41.7, "steps"): "42 steps/s", RateText(0.044, "pictures"): "0.044 pictures/s", RateText(3, ""): "", RateText(0, "steps"): "",
		RateText(math.NaN(), "steps"): "", sizeText(512 << 20): "512 MiB", sizeText(3<<30 + 1<<29): "3.5 GiB", sizeText(1 << 20): "1.0 MiB",
		leftText(120): "2 min", leftText(1e9): "months",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	Metrics(&fake{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	var parser expfmt.TextParser
	families, err := parser.TextToMetricFamilies(w.Body)
	if err != nil || w.Code != http.StatusOK || w.Header().Get("Content-Type") != MetricsType {
		t.Fatalf("%d %v", w.Code, err)
	}
	values := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			key := name
			for _, l := range m.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			values[key] = m.GetGauge().GetValue()
		}
	}
	for key, want := range map[string]float64{
		"vksplat_farm_jobs state=active":                                 1,
		"vksplat_farm_tasks state=queued":                                1001,
		"vksplat_farm_tasks state=failed":                                1,
		"vksplat_farm_job_tasks job=" + wild + " owner=ann state=queued": 1001,
		"vksplat_farm_node_devices node=node1 version=1\"\\\n?":          2,
		"vksplat_farm_node_tasks node=node1 version=1\"\\\n?":            1,
		"vksplat_farm_node_drained node=node2 version=unknown":           1,
		"vksplat_farm_node_heartbeat_seconds node=node2 version=unknown": float64(start.Unix()),

		"vksplat_farm_job_rate_per_second job=" + wild + " owner=ann unit=pictures": 0.5,
		"vksplat_farm_job_remaining_seconds job=" + wild + " owner=ann":             5400,
		"vksplat_farm_device_busy_ratio node=node1 device=a name=Card <A>":          0.5,
		"vksplat_farm_device_memory_used_bytes node=node1 device=a name=Card <A>":   3 << 30,
		"vksplat_farm_device_memory_budget_bytes node=node1 device=b name=Card B":   8 << 30,
		"vksplat_farm_device_tasks node=node1 device=a name=Card <A>":               1,
		"vksplat_farm_device_tasks node=node1 device=b name=Card B":                 0,
	} {
		if got, there := values[key]; !there || got != want {
			t.Errorf("%q is %v, want %v: %v", key, got, want, values)
		}
	}
	w = httptest.NewRecorder()
	Metrics(&fake{away: true}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("a farm that is away: %d", w.Code)
	}
	w = httptest.NewRecorder()
	Metrics(&fake{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestHook(t *testing.T) {
	var other, calls atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { other.Add(1) }))
	defer elsewhere.Close()
	job, _ := (&fake{}).job()
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, call int32)
		calls  int32
		err    string
	}{
		{"good", func(http.ResponseWriter, int32) {}, 1, ""},
		{"away twice", func(w http.ResponseWriter, call int32) {
			if call < 3 {
				w.WriteHeader(http.StatusBadGateway)
			}
		}, 3, ""},
		{"always away", func(w http.ResponseWriter, _ int32) { w.WriteHeader(http.StatusBadGateway) }, hookTries, "502"},
		{"refused", func(w http.ResponseWriter, _ int32) { w.WriteHeader(http.StatusNotFound) }, 1, "404"},
		{"elsewhere", func(w http.ResponseWriter, _ int32) {
			w.Header().Set("Location", elsewhere.URL)
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, 1, "redirection"},
	} {
		calls.Store(0)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var m ended
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.Job != wild || m.State != queue.JobActive || m.Counts[queue.Failed] != 1 {
				t.Errorf("%s: message %+v, %v", c.name, m, err)
			}
			c.answer(w, calls.Add(1))
		}))
		h, err := NewHook(server.URL + "/secret")
		if err != nil {
			t.Fatal(err)
		}
		h.pause = time.Millisecond
		err = h.Ended(t.Context(), job)
		if calls.Load() != c.calls || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %d calls, error %v", c.name, calls.Load(), err)
		}
		server.Close()
	}
	if other.Load() > 0 {
		t.Error("a redirection was followed")
	}
	for _, address := range []string{"", "file:///etc/passwd", "example.org", "https://", "http://user:word@example.org", "https://example.org/word%zz"} {
		if _, err := NewHook(address); err == nil || strings.Contains(err.Error(), "word") {
			t.Errorf("%q is taken, or told: %v", address, err)
		}
	}
}
