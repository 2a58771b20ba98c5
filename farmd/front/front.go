// Package front is the farm's one open port. It hands connections on: gRPC to Temporal's frontend, which listens on
// this machine only, as the bytes that arrive; requests to join or renew, which TLS tells apart by ALPN, to a handler
// of this process. TLS ends at those two.
//
// It exists because sockets cost: neither gRPC nor TLS bounds how many one machine may open and leave alone. Here a
// connection must begin TLS and answer the server's part of it within ten seconds; of those that have not, an address
// may have MaxWaiting, and then the oldest of them falls for every new one, so that idle sockets never lock anybody
// out.
package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"vksplat/farm/pass"
)

// patience is how long a handshake may take. Tests have less.
var patience = 10 * time.Second

// Bounds.
const (
	MaxWaiting = 64   // connections of an address whose handshake is not done
	MaxOpen    = 1024 // connections of an address that are
)

// spoken is how many bytes a client sends after its first message when it shows a certificate. Less is no handshake.
const spoken = 256

// Front is the open port.
type Front struct {
	Backend string              // address of Temporal's frontend
	Enrol   func(conn net.Conn) // takes connections over that want to join or renew, and closes them

	listener net.Listener
	mu       sync.Mutex
	of       map[string]*address
	closed   bool
	running  sync.WaitGroup
}

// address is what one remote address has open.
type address struct {
	host    string
	waiting []*client // those whose handshake is not done, oldest first
	all     map[*client]bool
}

// client is one connection.
type client struct {
	net.Conn
	from *address
}

// Serve takes connections until Close.
func (f *Front) Serve(listener net.Listener) error {
	f.mu.Lock()
	f.listener, f.of = listener, map[string]*address{}
	f.mu.Unlock()
	for {
		conn, err := listener.Accept()
		switch {
		case err == nil:
			c := f.enter(conn) // here, in their order: the oldest that waits is the first to go
			f.running.Go(func() { f.handle(c) })
		case f.isClosed():
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		default: // such as too many open files
			time.Sleep(50 * time.Millisecond)
		}
	}
}

func (f *Front) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Close ends all connections and waits until they have.
func (f *Front) Close() {
	f.mu.Lock()
	f.closed = true
	if f.listener != nil {
		_ = f.listener.Close()
	}
	for _, a := range f.of {
		for c := range a.all {
			_ = c.Close()
		}
	}
	f.mu.Unlock()
	f.running.Wait()
}

// handle serves one connection.
func (f *Front) handle(c *client) {
	defer f.leave(c)
	_ = c.SetDeadline(time.Now().Add(patience))
	hello, read, err := readHello(c)
	switch {
	case err != nil:
	case slices.Contains(hello.SupportedProtos, pass.EnrolProtocol):
		f.Enrol(&replayed{c, io.MultiReader(bytes.NewReader(read), c)})
	case slices.Contains(hello.SupportedProtos, "h2"):
		f.forward(c, read)
	}
}

// enter counts a new connection as waiting, and ends the oldest where there are too many.
func (f *Front) enter(conn net.Conn) *client {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.of[host]
	if a == nil {
		a = &address{host: host, all: map[*client]bool{}}
		f.of[host] = a
	}
	if len(a.waiting) >= MaxWaiting {
		_ = a.waiting[0].Close()
		a.waiting = a.waiting[1:]
	}
	c := &client{conn, a}
	a.waiting = append(a.waiting, c)
	a.all[c] = true
	if f.closed {
		_ = conn.Close()
	}
	return c
}

// settle says that the handshake of a connection is done. It is false where the address has too many of these.
func (f *Front) settle(c *client) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := c.from
	if len(a.all)-len(a.waiting) >= MaxOpen {
		return false
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(other *client) bool { return other == c })
	return true
}

// leave closes and forgets a connection.
func (f *Front) leave(c *client) {
	_ = c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	a := c.from
	a.waiting = slices.DeleteFunc(a.waiting, func(other *client) bool { return other == c })
	delete(a.all, c)
	if len(a.all) == 0 {
		delete(f.of, a.host)
	}
}

// forward copies between a client and Temporal's frontend.
func (f *Front) forward(c *client, read []byte) {
	server, err := net.DialTimeout("tcp", f.Backend, patience)
	if err != nil {
		return
	}
	var back sync.WaitGroup
	defer back.Wait()
	defer c.Close()
	defer server.Close()
	if _, err := server.Write(read); err != nil {
		return
	}
	back.Go(func() {
		_, _ = io.Copy(c.Conn, server)
		_ = c.Close()
	})
	if n, err := io.CopyN(server, c.Conn, spoken); n < spoken || err != nil || !f.settle(c) {
		return
	}
	_ = c.SetDeadline(time.Time{})
	_, _ = io.Copy(server, c.Conn)
}

// replayed is a connection whose first bytes have been read already.
type replayed struct {
	net.Conn
	r io.Reader
}

func (c *replayed) Read(p []byte) (int, error) { return c.r.Read(p) }

// errSeen ends a handshake once its first message is known.
var errSeen = errors.New("seen")

// readHello reads the first message of TLS, and returns the bytes that were read for it.
func readHello(conn net.Conn) (hello *tls.ClientHelloInfo, read []byte, err error) {
	var seen bytes.Buffer
	err = tls.Server(onlyRead{conn, io.TeeReader(conn, &seen)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			hello = h
			return nil, errSeen
		},
	}).HandshakeContext(context.Background())
	if hello == nil {
		return nil, nil, err
	}
	return hello, seen.Bytes(), nil
}

// onlyRead keeps the alert of the handshake that readHello breaks off from the client.
type onlyRead struct {
	net.Conn
	r io.Reader
}

func (c onlyRead) Read(p []byte) (int, error)  { return c.r.Read(p) }
func (c onlyRead) Write(p []byte) (int, error) { return len(p), nil }
func (c onlyRead) Close() error                { return nil }
