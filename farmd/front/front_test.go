package front

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

func init() { patience = time.Second }

// start serves a front before a backend that answers the first byte it reads with "ok".
func start(t *testing.T) (address string, reached *atomic.Int32) {
	t.Helper()
	reached = new(atomic.Int32)
	backend := listen(t)
	go func() {
		for {
			c, err := backend.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			go func() {
				_, _ = c.Read(make([]byte, 1))
				_, _ = c.Write([]byte("ok"))
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			}()
		}
	}()
	f := &Front{Backend: backend.Addr().String(), Enrol: func(c net.Conn) { _, _ = c.Write([]byte("enrol")) }}
	l := listen(t)
	serveFront(t, f, l)
	return l.Addr().String(), reached
}

// serveFront serves a front until the test ends.
func serveFront(t *testing.T, f *Front, l net.Listener) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f.Serve(l) }()
	t.Cleanup(func() {
		f.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

// hello sends the first message of TLS with an ALPN, without doing more.
func hello(t *testing.T, c net.Conn, alpn string) {
	t.Helper()
	go func() {
		_ = tls.Client(silent{c}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{alpn}}).Handshake()
	}()
}

// silent leaves what is read to the test.
type silent struct{ net.Conn }

func (silent) Read([]byte) (int, error) { return 0, io.EOF }
func (silent) Close() error             { return nil }

// What a connection wants is told by ALPN; what wants nothing that is served is closed.
func TestRoutes(t *testing.T) {
	address, reached := start(t)
	for alpn, want := range map[string]string{"h2": "ok", "vksplat-farm-enrol": "enrol", "http/1.1": ""} {
		c := dial(t, address)
		hello(t, c, alpn)
		got := make([]byte, len(want)+1)
		n, err := io.ReadAtLeast(c, got, max(1, len(want)))
		if string(got[:n]) != want || (want == "") != (err != nil) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: %q, %v", alpn, got[:n], err)
		}
	}
	c := dial(t, address)
	_, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n"))
	if n, err := c.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("plaintext: %d bytes, %v", n, err)
	}
	if n := reached.Load(); n != 1 {
		t.Errorf("%d connections reached the backend", n)
	}
}

// Sockets that say nothing, or begin TLS and stop, push each other out, and nobody else.
func TestIdle(t *testing.T) {
	address, _ := start(t)
	var idle []net.Conn
	for i := range 5 * MaxWaiting {
		c := dial(t, address)
		idle = append(idle, c)
		if i%2 == 1 {
			hello(t, c, "h2")
		}
	}
	c := dial(t, address)
	hello(t, c, "h2")
	if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
		t.Errorf("who comes after idle sockets: %v", err)
	}
	closed := make(chan bool, len(idle))
	for _, c := range idle {
		go func() {
			_, err := io.Copy(io.Discard, c)
			closed <- !errors.Is(err, os.ErrDeadlineExceeded)
		}()
	}
	for range idle { // the first at once, the last after patience
		if !<-closed {
			t.Fatal("an idle socket stays open")
		}
	}
}
