package view

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
)

// serving has a server serve until the test ends.
func serving(t *testing.T, s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-over; err != nil {
			t.Error(err)
		}
	})
}

// post is a POST request as a page of the server sends it.
func post(s *Server, name, body string, headers ...string) string {
	origin := strings.TrimSuffix(s.URL()[:strings.Index(s.URL(), "?")], "/")
	text := request(s, s.prefix+name, append([]string{"Origin: " + origin}, headers...)...)
	return strings.TrimSuffix(strings.Replace(text, "GET", "POST", 1), "\r\n") + fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)
}

// postServer has an action that says what it got, and something below a name.
func postServer(t *testing.T) *Server {
	t.Helper()
	s := must.Get(Listen(ServerOptions{}))(t)
	s.Handle("", bytesHandler("index.html", []byte("page")))
	s.HandlePost("act", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, "got "+string(body))
	}))
	s.Handle("below/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, s.Below(r))
	}))
	serving(t, s)
	return s
}

// TestPost has only a page of the server itself change something.
func TestPost(t *testing.T) {
	s := postServer(t)
	good := post(s, "act", "this")
	if status, body := raw(t, s, good); status != 200 || body != "got this" {
		t.Fatalf("the good request: %d %q", status, body)
	}
	without := func(name string) string {
		var kept []string
		for _, line := range strings.SplitAfter(good, "\r\n") {
			if !strings.HasPrefix(line, name) {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"no cookie", without("Cookie:"), 403},
		{"no origin", without("Origin:"), 403},
		{"a foreign origin", strings.Replace(good, "Origin: http://", "Origin: http://evil.example/", 1), 403},
		{"an origin that is none", strings.Replace(good, "Origin: http://", "Origin: null", 1), 403},
		{"a foreign host", strings.Replace(good, "Host: 127.0.0.1", "Host: evil.example", 1), 403},
		{"another site", post(s, "act", "this", "Sec-Fetch-Site: cross-site"), 403},
		{"a link from elsewhere", post(s, "act", "this", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
			"Sec-Fetch-Dest: document"), 403},
		{"what is only read", post(s, "", "this"), 404},
		{"what is only changed", request(s, s.prefix+"act"), 404},
		{"the entry", strings.Replace(good, s.prefix+"act", "/?token="+s.token, 1), 404},
		{"PUT", strings.Replace(good, "POST", "PUT", 1), 405},
	} {
		if status, body := raw(t, s, c.text); status != c.want || strings.Contains(body, "got") {
			t.Errorf("%s: %d %q, want %d", c.name, status, body, c.want)
		}
	}
	if status, _ := raw(t, testServer(t, ServerOptions{}), good); status != 405 {
		t.Errorf("a server without actions: %d", status)
	}
}

// TestBelow serves what is below a name, and nothing beside it.
func TestBelow(t *testing.T) {
	s := postServer(t)
	for path, want := range map[string]string{"below/": "below/", "below/a/b": "below/a/b", "below": "", "belowx": "",
		"x/below/": ""} {
		status, body := raw(t, s, request(s, s.prefix+path))
		if want == "" && status != 404 || want != "" && body != want {
			t.Errorf("%s: %d %q, want %q", path, status, body, want)
		}
	}
}

// TestRelay reaches a server through another: with its page, its errors, and no header twice.
func TestRelay(t *testing.T) {
	inner := testServer(t, ServerOptions{})
	relay, err := NewRelay(t.Context(), inner.URL())
	if err != nil {
		t.Fatal(err)
	}
	outer := must.Get(Listen(ServerOptions{}))(t)
	outer.Handle("inner/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		relay.Pass(w, r, strings.TrimPrefix(outer.Below(r), "inner/"))
	}))
	serving(t, outer)
	at := outer.URL()[:strings.Index(outer.URL(), "/?")] + outer.prefix
	r := must.Get(http.NewRequest(http.MethodGet, at+"inner/boot.js", nil))(t)
	r.AddCookie(&http.Cookie{Name: cookieName, Value: outer.session})
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != 200 || string(body) != string(mustAsset("page/boot.js")) {
		t.Errorf("%s, %d bytes, %v", answer.Status, len(body), err)
	}
	for name, values := range answer.Header {
		if len(values) != 1 || name == "Set-Cookie" || strings.Contains(values[0], inner.session) {
			t.Errorf("%s: %q", name, values)
		}
	}
	if status, _ := raw(t, outer, request(outer, outer.prefix+"inner/none")); status != 404 {
		t.Errorf("what the inner server lacks: %d", status)
	}
	short, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	wrong := strings.Replace(inner.URL(), "token=", "token=x", 1)
	if _, err := NewRelay(short, wrong); err == nil {
		t.Error("a wrong token opens a server")
	}
}

// TestRelayPlaces has no relay lead to another machine, or to the server of another program.
func TestRelayPlaces(t *testing.T) {
	for _, host := range []string{"192.0.2.1:80", "10.0.0.1:80", "[::]:80", "0.0.0.0:80", "localhost:80", "example.com:80",
		"[::ffff:127.0.0.1]:80", "127.0.0.1", "127.0.0.1:80@192.0.2.1:80", "user@127.0.0.1:80", ""} {
		if _, err := NewRelay(t.Context(), "http://"+host+"/?token=x"); err == nil ||
			!strings.Contains(err.Error(), "loopback address") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := NewRelay(t.Context(), "https://127.0.0.1:80/?token=x"); err == nil ||
		!strings.Contains(err.Error(), "loopback address") {
		t.Errorf("TLS: %v", err)
	}
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "x"})
	}))
	defer other.Close()
	if _, err := NewRelay(t.Context(), other.URL+"/?token=x"); err == nil {
		t.Error("the server of another program is relayed")
	}
}
