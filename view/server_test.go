package view

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

const patience = time.Minute // for machines that do much else

// testServer serves a model of three splats until the test ends.
func testServer(t *testing.T, o ServerOptions) *Server {
	t.Helper()
	m := must.Get(Prepare(testModel(t, 3), t.TempDir(), false))(t)
	return serve(t, o, Scene{Title: "</title><script>", Start: StartAt(nil, "", m.Positions)}, m)
}

// serve serves a scene until the test ends, by an end like Ctrl-C's.
func serve(t *testing.T, o ServerOptions, what Scene, model *Model) *Server {
	t.Helper()
	s := must.Get(Listen(o))(t)
	must.Do(t, Show(s, what, model))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the server ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("the server does not end")
		}
	})
	return s
}

// get asks for a path with headers, and returns status, headers and body.
func get(t *testing.T, c *http.Client, address string, headers ...string) (int, http.Header, string) {
	t.Helper()
	r := must.Get(http.NewRequest(http.MethodGet, address, nil))(t)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer := must.Get(c.Do(r))(t)
	defer answer.Body.Close() // only read
	body := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, answer.Header, string(body)
}

// browser is a client that keeps cookies.
func browser(t *testing.T) *http.Client {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	transport := &http.Transport{DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Jar: jar, Transport: transport}
}

// enterBy opens the address that is printed, and returns the page's.
func enterBy(t *testing.T, c *http.Client, s *Server, address string) string {
	t.Helper()
	status, _, body := get(t, c, address)
	if status != http.StatusOK || !strings.Contains(body, "0;url="+s.prefix) {
		t.Fatalf("entry: %d %s", status, body)
	}
	u := must.Get(url.Parse(address))(t)
	u.RawQuery, u.Path = "", s.prefix
	return u.String()
}

// TestServes goes the way of a browser.
func TestServes(t *testing.T) {
	s := testServer(t, ServerOptions{})
	c := browser(t)
	page := enterBy(t, c, s, s.URL())
	if s.Public() || s.Encrypted() || !strings.HasPrefix(s.URL(), "http://127.0.0.1:") {
		t.Errorf("address %s", s.URL())
	}
	status, h, body := get(t, c, page)
	if status != 200 || h.Get("Content-Type") != "text/html; charset=utf-8" ||
		!strings.Contains(body, "&lt;/title&gt;") || strings.Contains(body, s.token) {
		t.Errorf("page: %d %v\n%s", status, h, body)
	}
	for name, want := range map[string]string{"page.css": "text/css", "boot.js": "text/javascript",
		"index.css": "text/css", "index.js": "text/javascript", "scene.ply": "application/octet-stream"} {
		status, h, body := get(t, c, page+name)
		if status != 200 || !strings.HasPrefix(h.Get("Content-Type"), want) || len(body) < 100 ||
			h.Get("Content-Encoding") != "" || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v, %d bytes", name, status, h, len(body))
		}
		tag := h.Get("Etag")
		if status, _, _ := get(t, c, page+name, "If-None-Match", tag); status != http.StatusNotModified || tag == "" {
			t.Errorf("%s with its tag %s: %d", name, tag, status)
		}
		if status, h, part := get(t, c, page+name, "Range", "bytes=5-14"); status != 206 || part != body[5:15] ||
			h.Get("Content-Range") != "bytes 5-14/"+strconv.Itoa(len(body)) {
			t.Errorf("%s, a part: %d %v %q", name, status, h, part)
		}
		if status, _, _ := get(t, c, page+name, "Range",
			"bytes=999999999-"); status != http.StatusRequestedRangeNotSatisfiable {
			t.Errorf("%s, a part beyond its end: %d", name, status)
		}
		if status, _, whole := get(t, c, page+name, "Range", "bytes=5-14", "If-Range", `"other"`); status != 200 ||
			whole != body {
			t.Errorf("%s, a part of another version: %d", name, status)
		}
	}
	status, h, body = get(t, c, page+"index.js", "Accept-Encoding", "gzip")
	small := must.Get(gzip.NewReader(strings.NewReader(body)))(t)
	if script, err := io.ReadAll(small); err != nil || status != 200 || h.Get("Content-Encoding") != "gzip" ||
		!bytes.Equal(script, viewerScript(0)) {
		t.Errorf("compressed: %d %v, %d bytes, %v", status, h, len(body), err)
	}
}

// TestTokens wants the printed address to work as often as it is opened, and the browser's once.
func TestTokens(t *testing.T) {
	s := testServer(t, ServerOptions{})
	once := s.URLOnce()
	enterBy(t, browser(t), s, s.URL())
	enterBy(t, browser(t), s, once)
	enterBy(t, browser(t), s, s.URL())
	if status, h, _ := get(t, browser(t), once); status != http.StatusForbidden || h.Get("Set-Cookie") != "" {
		t.Errorf("the second use of %s: %d", once, status)
	}
	_, h, _ := get(t, browser(t), s.URL())
	if c := h.Get("Set-Cookie"); !strings.Contains(c, "; HttpOnly") || !strings.Contains(c, "; SameSite=Strict") ||
		!strings.Contains(c, "; Path="+s.prefix) || strings.Contains(c, s.token) {
		t.Errorf("cookie %s", c)
	}
}

// TestGone wants the page to be told when the model is removed.
func TestGone(t *testing.T) {
	path := testModel(t, 2)
	m := must.Get(Prepare(path, t.TempDir(), false))(t)
	must.Do(t, os.Remove(path))
	w := &recorder{header: http.Header{}}
	serveFile(w, &http.Request{Method: http.MethodGet}, m.path, "gone", http.StatusGone)
	if w.status != http.StatusGone {
		t.Errorf("status %d", w.status)
	}
}

type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }

// writeCertificate makes a certificate of 127.0.0.1 and its key.
func writeCertificate(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	what := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der := must.Get(x509.CreateCertificate(rand.Reader, what, what, private.Public(), private))(t)
	secret := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	cert, key = filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must.Do(t, errors.Join(os.WriteFile(cert, certPEM, 0o600),
		os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600)))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return cert, key, pool
}

// TestEncrypted serves over TLS, with a cookie for TLS alone.
func TestEncrypted(t *testing.T) {
	cert, key, pool := writeCertificate(t)
	s := testServer(t, ServerOptions{CertFile: cert, KeyFile: key})
	c := browser(t)
	c.Transport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	page := enterBy(t, c, s, s.URL())
	if status, _, _ := get(t, c, page+"boot.js"); status != 200 || !strings.HasPrefix(page, "https://") {
		t.Errorf("%s: %d", page, status)
	}
	if _, h, _ := get(t, c, s.URL()); !strings.Contains(h.Get("Set-Cookie"), "; Secure") {
		t.Errorf("cookie %s", h.Get("Set-Cookie"))
	}
	if status, _, _ := get(t, c, page+"boot.js", "Origin",
		strings.Replace(s.URL()[:strings.Index(s.URL(), "/?")], "https", "http", 1)); status != http.StatusForbidden {
		t.Errorf("an origin without TLS: %d", status)
	}
}

// TestListenRefuses wants errors with a remedy, of the kind that the exit code follows.
func TestListenRefuses(t *testing.T) {
	s := testServer(t, ServerOptions{})
	u := must.Get(url.Parse(s.URL()))(t)
	port := must.Get(strconv.Atoi(u.Port()))(t)
	if _, err := Listen(ServerOptions{Port: port}); !errors.Is(err, fault.ErrTryAgain) || fault.Hint(err) == "" {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := Listen(ServerOptions{Host: "192.0.2.1"}); !errors.Is(err, fault.ErrUsage) {
		t.Errorf("an address of another machine: %v", err)
	}
	cert, key, _ := writeCertificate(t)
	for _, pair := range [][2]string{{cert, cert}, {key, key}, {filepath.Join(t.TempDir(), "none"), key}} {
		if _, err := Listen(ServerOptions{CertFile: pair[0], KeyFile: pair[1]}); !errors.Is(err, fault.ErrData) ||
			fault.Hint(err) == "" {
			t.Errorf("%v: %v", pair, err)
		}
	}
}
