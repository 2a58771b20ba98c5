package view

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// raw sends text to the server, as no client would, and returns the answer's status and body; status 0 is a connection
// that was closed without one.
func raw(t *testing.T, s *Server, text string) (status int, body string) {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	c := must.Get(net.Dial("tcp", u.Host))(t)
	defer c.Close() // nothing is left to send
	must.Do(t, c.SetDeadline(time.Now().Add(patience)))
	go func() { _, _ = io.WriteString(c, text) }() // the server may hang up in between
	answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: http.MethodGet})
	if err != nil {
		return 0, ""
	}
	defer answer.Body.Close()                                 // only read
	data, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<20)) // what came counts
	return answer.StatusCode, string(data)
}

// request is the text of one, with a good cookie and the right host unless others are given.
func request(s *Server, target string, headers ...string) string {
	text := "GET " + target + " HTTP/1.1\r\n"
	all := strings.Join(headers, "\r\n")
	if !strings.Contains(all, "Host:") {
		text += "Host: " + strings.TrimPrefix(s.URL()[:strings.Index(s.URL(), "/?")], "http://") + "\r\n"
	}
	if !strings.Contains(all, "Cookie:") {
		text += "Cookie: vksplat=" + s.session + "\r\n"
	}
	if all != "" {
		text += all + "\r\n"
	}
	return text + "\r\n"
}

// TestHostileTargets asks for what is not served, with a good cookie: only names that were registered exist, and no
// path leads to a file.
func TestHostileTargets(t *testing.T) {
	s := testServer(t, ServerOptions{})
	if status, _ := raw(t, s, request(s, s.prefix+"boot.js")); status != 200 {
		t.Fatalf("the good request: %d", status)
	}
	p := s.prefix
	targets := []string{
		p + "../../../../../../etc/passwd", p + "..%2f..%2f..%2fetc%2fpasswd", p + "%2e%2e/%2e%2e/etc/passwd",
		p + "..\\..\\..\\etc\\passwd", p + "..%5c..%5cetc%5cpasswd",
		p + "/etc/passwd", "/etc/passwd", "//etc/passwd", p + "boot.js%00.ply", p + "boot.js/", p + "boot.js/..",
		p + "./boot.js", p + "%252e%252e/etc/passwd",
		p + "....//....//etc/passwd", p + "C:/Windows/win.ini", p + "file:///etc/passwd", p + "supersplat/SHA256SUMS",
		p + "page/index.html", p + "boot.js::$DATA",
		p + "BOOT.JS", p + "index.js.gz", p + "model.ply", strings.TrimSuffix(p, "/"), "/" + p,
		"/./" + p, "/x/.." + p, p + "\xff\xfe", p + strings.Repeat("a", 8000),
		p + "%c0%ae%c0%ae/etc/passwd", "/robots.txt", "/favicon.ico", "/debug/pprof/",
	}
	if upper := strings.ToUpper(p); upper != p { // by chance it has no letter
		targets = append(targets, upper)
	}
	for _, target := range targets {
		status, body := raw(t, s, request(s, target))
		if status != http.StatusNotFound && status != http.StatusBadRequest && status != http.StatusForbidden ||
			strings.Contains(body, "root:") {
			t.Errorf("%.80q: %d %.80q", target, status, body)
		}
	}
}

// TestHostileRequests sends requests that a good browser would not, or not for the user. Each is one change of the good
// one.
func TestHostileRequests(t *testing.T) {
	s := testServer(t, ServerOptions{})
	file, entry := s.prefix+"scene.ply", "/?token="+s.token
	other := testServer(t, ServerOptions{})
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"good", request(s, file), 200},
		{"good entry", request(s, entry, "Cookie: a=b"), 200},
		// as through ssh -L
		{"its own origin", request(s, file, "Host: localhost:8080", "Origin: http://localhost:8080",
			"Sec-Fetch-Site: same-origin"), 200},
		{"a link from elsewhere",
			request(s, entry, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"),
			200},
		{"two cookies", request(s, file, "Cookie: vksplat="+other.session+"; vksplat="+s.session), 200},

		{"no cookie", request(s, file, "Cookie: a=b"), 403},
		{"no cookie, the page", request(s, s.prefix, "Cookie: a=b"), 403},
		{"no cookie, nothing", request(s, "/nothing", "Cookie: a=b"), 403},
		{"another server's cookie", request(s, file, "Cookie: vksplat="+other.session), 403},
		{"the token as cookie", request(s, file, "Cookie: vksplat="+s.token), 403},
		{"an empty cookie", request(s, file, "Cookie: vksplat="), 403},
		{"half a cookie", request(s, file, "Cookie: vksplat="+s.session[:20]), 403},
		{"no token", request(s, "/"), 403},
		{"an empty token", request(s, "/?token="), 403},
		{"another token", request(s, "/?token="+other.token), 403},
		{"the session as token", request(s, "/?token="+s.session), 403},
		{"the token too late", request(s, "/?token=&token="+s.token), 403},
		{"the token elsewhere", request(s, file+"?token="+s.token, "Cookie: a=b"), 403},

		{"another name", request(s, file, "Host: evil.example"), 403},
		{"another name, the entry", request(s, entry, "Host: evil.example"), 403},
		{"a name that begins so", request(s, file, "Host: 127.0.0.1.evil.example"), 403},
		{"a name that ends so", request(s, file, "Host: evil.localhost"), 403},
		{"another address", request(s, file, "Host: 192.0.2.1"), 403},
		{"no name", request(s, file, "Host: "), 403},
		{"a proxy's request", request(s, "http://evil.example"+file), 403},
		{"two hosts", request(s, file, "Host: localhost", "Host: evil.example"), 400},

		{"another origin", request(s, file, "Origin: http://evil.example"), 403},
		{"another port", request(s, file, "Origin: http://127.0.0.1:1"), 403},
		{"no origin to speak of", request(s, file, "Origin: null"), 403},
		{"another origin, the entry", request(s, entry, "Origin: http://evil.example"), 403},
		{"from another site", request(s, file, "Sec-Fetch-Site: cross-site"), 403},
		{"from another port", request(s, file, "Sec-Fetch-Site: same-site"), 403},
		{"in a frame", request(s, entry, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
			"Sec-Fetch-Dest: iframe"), 403},
		{"as a picture", request(s, entry, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors",
			"Sec-Fetch-Dest: image"), 403},
		{"a link to a file", request(s, file, "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate",
			"Sec-Fetch-Dest: document"), 403},
		{"a WebSocket from elsewhere",
			request(s, file, "Origin: http://evil.example", "Upgrade: websocket", "Connection: Upgrade"), 403},

		{"POST", strings.Replace(request(s, file, "Content-Length: 0"), "GET", "POST", 1), 405},
		{"PUT", strings.Replace(request(s, file, "Content-Length: 5")+"hello", "GET", "PUT", 1), 405},
		{"OPTIONS", strings.Replace(request(s, file), "GET", "OPTIONS", 1), 405},
		{"CONNECT", strings.Replace(request(s, "evil.example:80"), "GET", "CONNECT", 1), 405},
		{"TRACE", strings.Replace(request(s, file), "GET", "TRACE", 1), 405},
		{"no word", strings.Replace(request(s, file), "GET", "G E T", 1), 400},
		{"large headers", request(s, file, "X: "+strings.Repeat("a", 64<<10)), 431},
		{"many headers", request(s, file, strings.Repeat("X: a\r\n", 20000)+"Y: b"), 431},
		{"a long target", request(s, s.prefix+strings.Repeat("a", 64<<10)), 431},
		{"two lengths", request(s, file, "Content-Length: 1", "Content-Length: 2"), 400},
		{"version 2 as text", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
		{"many ranges", request(s, file, "Range: bytes="+strings.Repeat("0-,", 1000)+"0-"), 200},
	} {
		status, body := raw(t, s, c.text)
		if c.want == 0 {
			if status == 200 {
				t.Errorf("%s: answered", c.name)
			}
			continue
		}
		if status != c.want {
			t.Errorf("%s: %d %.100q, want %d", c.name, status, body, c.want)
		}
		if c.want != 200 && (strings.Contains(body, s.token) || strings.Contains(body, s.session) ||
			strings.Contains(body, s.prefix)) {
			t.Errorf("%s: the refusal tells a secret: %q", c.name, body)
		}
	}
}

// TestPublicNames listens for other machines: any address of the machine may be asked for, but no name that it does not
// have.
func TestPublicNames(t *testing.T) {
	s := testServer(t, ServerOptions{Host: "0.0.0.0"})
	if !s.Public() || strings.Contains(s.URL(), "0.0.0.0") {
		t.Errorf("address %s", s.URL())
	}
	for host, want := range map[string]bool{"192.168.1.7:8080": true, "[2001:db8::1]:80": true, "localhost": true,
		"evil.example": false, "": false, "0x7f.1": false} {
		if s.knows(host) != want {
			t.Errorf("Host %q: %v", host, !want)
		}
	}
}

// TestConnections fills all places with connections that say nothing, or half of a request: who shows a secret gets in
// all the same, and keeps the place. Where all have shown one, one more is hung up on, and places are given back.
func TestConnections(t *testing.T) {
	s := testServer(t, ServerOptions{})
	u := must.Get(url.Parse(s.URL()))(t)
	connect := func(text string) net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", u.Host)
		if err == nil {
			_, err = io.WriteString(c, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for i := range 3 * maxConnections {
		connect("GET / HTTP/1.1\r\nHost: local"[:9*(i%3)])
		if i%50 == 0 {
			if status, _ := raw(t, s, request(s, s.prefix)); status != 200 {
				t.Fatalf("after %d connections that say nothing: %d", i+1, status)
			}
		}
	}
	var known []net.Conn
	for range maxConnections {
		c := connect(request(s, s.prefix+"boot.js"))
		if answer, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || answer.StatusCode != 200 {
			t.Fatalf("connection %d that shows a secret: %v", len(known), err)
		}
		known = append(known, c)
	}
	if status, _ := raw(t, s, request(s, s.prefix)); status != 0 {
		t.Errorf("one connection too many: %d", status)
	}
	for _, c := range known {
		must.Do(t, c.Close())
	}
	// the server has to notice
	for begin := time.Now(); time.Since(begin) < patience; time.Sleep(20 * time.Millisecond) {
		if status, _ := raw(t, s, request(s, s.prefix)); status == 200 {
			return
		}
	}
	t.Error("no place is given back")
}

// TestConnectionsEncrypted wants a connection that has shown a secret to keep its place under TLS, too.
func TestConnectionsEncrypted(t *testing.T) {
	cert, key, pool := writeCertificate(t)
	s := testServer(t, ServerOptions{CertFile: cert, KeyFile: key})
	u := must.Get(url.Parse(s.URL()))(t)
	c, dials := browser(t), 0
	transport := c.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		dials++
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	page := enterBy(t, c, s, s.URL())
	for range 2 * maxConnections {
		silent := must.Get(net.Dial("tcp", u.Host))(t)
		t.Cleanup(func() { _ = silent.Close() })
	}
	if status, _, _ := get(t, c, page); status != 200 || dials != 1 {
		t.Errorf("after silent connections: %d, %d connections of the browser's", status, dials)
	}
}

// TestHeaderLimit wants headers of up to maxHeaderBytes taken and longer ones refused, whatever part is long.
func TestHeaderLimit(t *testing.T) {
	s := testServer(t, ServerOptions{})
	page, plain := s.prefix, len(request(s, s.prefix))
	for name, text := range map[string]func(fill string) string{
		"one line":  func(fill string) string { return request(s, page, "X: "+fill) }, // 5 bytes are not fill
		"the query": func(fill string) string { return request(s, page+"?1234"+fill) },
	} {
		fill := strings.Repeat("a", maxHeaderBytes-plain-5)
		if n := len(text(fill)); n != maxHeaderBytes {
			t.Fatalf("%s: %d bytes", name, n)
		}
		if status, _ := raw(t, s, text(fill)); status != 200 {
			t.Errorf("%s, the longest: %d", name, status)
		}
		if status, _ := raw(t, s, text(fill+"a")); status != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s, a byte more: %d", name, status)
		}
	}
}

// TestEntryKeepsQuery wants what the address holds beside the token to reach the page, without the token, and as a part
// of the page's text.
func TestEntryKeepsQuery(t *testing.T) {
	s := testServer(t, ServerOptions{})
	for query, want := range map[string]string{"": `url=` + s.prefix + `">`, "&webgl": `url=` + s.prefix + `?webgl=">`,
		"&webgl&noui=1":         `?noui=1&amp;webgl=">`,
		"&a=%22%3E%3Cscript%3E": `?a=%22%3E%3Cscript%3E">`} {
		status, _, body := get(t, browser(t), s.URL()+query)
		if status != 200 || !strings.Contains(body, want) || strings.Contains(body, s.token) {
			t.Errorf("%q: %d %s, want %s", query, status, body, want)
		}
	}
}

// TestDawdlers wants those cut off who send no whole request, and those who take nothing of a long answer.
func TestDawdlers(t *testing.T) {
	if !filetest.Long() {
		t.Skip("waits for half a minute; VKSPLAT_LONG=1 runs it")
	}
	path := filepath.Join(t.TempDir(), "large.ply")
	if err := errors.Join(os.WriteFile(path, nil, 0o666), os.Truncate(path, 1<<30)); err != nil { // takes no room
		t.Fatal(err)
	}
	s := serve(t, ServerOptions{}, Scene{Start: StartAt(nil, "", nil)}, &Model{path: path, name: plainName})
	u := must.Get(url.Parse(s.URL()))(t)
	for name, text := range map[string]string{"half a request": "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
		"an answer not taken": request(s, s.prefix+plainName)} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", u.Host)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close() // nothing is left to send
			must.Get(io.WriteString(c, text))(t)
			time.Sleep(max(headerTimeout, writeTimeout) + 2*time.Second)
			must.Do(t, c.SetDeadline(time.Now().Add(patience)))
			// What was under way arrives; then it is over, long before the end of the file.
			n, err := io.Copy(io.Discard, c)
			var late net.Error
			if n > 1<<28 || errors.As(err, &late) && late.Timeout() {
				t.Errorf("%d bytes came, %v", n, err)
			}
		})
	}
}

// FuzzRefuses wants no request answered that shows no secret, whatever it says.
func FuzzRefuses(f *testing.F) {
	f.Add("GET", "/", "token=", "127.0.0.1", "", "")
	f.Add("HEAD", "/x/boot.js", "", "localhost:1", "http://localhost:1", "vksplat=")
	f.Add("GET", "/x/../", "a=%zz&token", "[::1]:8", "null", `vksplat="a"; vksplat`)
	s := &Server{scheme: "http", loopback: true, token: "token", once: "once", session: "session", prefix: "/x/",
		handlers: map[string]http.Handler{"": http.NotFoundHandler(), "boot.js": http.NotFoundHandler()}}
	f.Fuzz(func(t *testing.T, method, path, query, host, origin, cookie string) {
		secrets := fmt.Sprint(query, cookie)
		if strings.Contains(secrets, "token=token") || strings.Contains(secrets, "once") ||
			strings.Contains(secrets, "session") || strings.ContainsAny(query, "%") {
			return
		}
		r := &http.Request{Method: method, URL: &url.URL{Path: path, RawQuery: query}, Host: host,
			Header: http.Header{"Origin": {origin}, "Cookie": {cookie}}}
		w := httptest.NewRecorder()
		s.guarded().ServeHTTP(w, r)
		if w.Code < 400 {
			t.Errorf("answered with %d", w.Code)
		}
	})
}
