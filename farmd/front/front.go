// Package front is the farm's one open port. It hands connections on: gRPC to Temporal's frontend, which listens on
// this machine only, as the bytes that arrive; requests to join or renew, which TLS tells apart by ALPN, to a handler
// of this process. TLS ends at those two.
//
// It exists because sockets cost: neither gRPC nor TLS bounds how many one machine may open and leave alone. Here a
// connection must show a pass within ten seconds: who verifies certificates calls Proved, and what the backend sends
// next is the proof, as it sends nothing until the client has signed with the certificate's key. Of those that have
// not, an address may have MaxWaiting, then its own oldest falls for every new one: one address never locks out others.
// All together may have MaxAllWaiting, then the oldest of all falls: eight addresses or more that open connections
// faster than others complete their handshakes do lock those out, but never those that have shown a pass.
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
	MaxWaiting    = 64   // connections of an address that have not shown a pass
	MaxAllWaiting = 512  // those of all addresses: each has up to seven file descriptors
	MaxOpen       = 1024 // connections of an address that have
)

// Front is the open port.
type Front struct {
	Backend string              // address of Temporal's frontend
	Enrol   func(conn net.Conn) // takes connections over that want to join or renew, and closes them

	listener net.Listener
	mu       sync.Mutex
	of       map[string]*address
	waiting  []*client          // those that have not shown a pass, oldest first
	backend  map[string]*client // by this side's address of the connection to the backend
	closed   bool
	running  sync.WaitGroup
}

// address is what one remote address has open.
type address struct {
	host    string
	waiting int // connections that have not shown a pass
	proved  int // those that have
	all     map[*client]bool
}

// client is one connection.
type client struct {
	net.Conn
	from    *address
	waiting bool
	shown   bool // a certificate, whose key it may not have
	proved  bool
}

// Serve takes connections until Close.
func (f *Front) Serve(listener net.Listener) error {
	f.mu.Lock()
	f.listener, f.of, f.backend = listener, map[string]*address{}, map[string]*client{}
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
	if a.waiting >= MaxWaiting {
		f.drop(func(c *client) bool { return c.from == a })
	} else if len(f.waiting) >= MaxAllWaiting {
		f.drop(func(*client) bool { return true })
	}
	c := &client{Conn: conn, from: a, waiting: true}
	f.waiting = append(f.waiting, c)
	a.waiting++
	a.all[c] = true
	if f.closed {
		_ = conn.Close()
	}
	return c
}

// drop ends the oldest of some connections that wait. The caller holds mu.
func (f *Front) drop(of func(c *client) bool) {
	c := f.waiting[slices.IndexFunc(f.waiting, of)]
	_ = c.Close()
	f.unlist(c)
}

// unlist notes that a connection does not wait any more. The caller holds mu.
func (f *Front) unlist(c *client) {
	if c.waiting {
		c.waiting = false
		c.from.waiting--
		f.waiting = slices.DeleteFunc(f.waiting, func(other *client) bool { return other == c })
	}
}

// Proved says that the client behind a connection to the backend, which has this remote address there, has shown the
// certificate of a pass: it may stay once the backend sends more. It is false where the connection does not come from
// here, fell meanwhile, or its address has too many.
func (f *Front) Proved(remote net.Addr) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.backend[remote.String()]
	if c == nil || !c.waiting || c.from.proved >= MaxOpen {
		return false
	}
	c.shown = true
	return true
}

// settle says whether it is decided of a client to which the backend sends something that it may stay, or is one too
// many.
func (f *Front) settle(c *client) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.shown || !c.waiting {
		return false
	}
	f.unlist(c)
	if c.from.proved >= MaxOpen {
		_ = c.Close()
		return true
	}
	c.proved = true
	c.from.proved++
	_ = c.SetDeadline(time.Time{}) // fails where it is closed, which who writes to it finds out
	return true
}

// leave closes and forgets a connection.
func (f *Front) leave(c *client) {
	_ = c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	a := c.from
	f.unlist(c)
	if c.proved {
		a.proved--
	}
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
	at := server.LocalAddr().String()
	f.mu.Lock()
	f.backend[at] = c
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.backend, at)
	}()
	var back sync.WaitGroup
	defer back.Wait()
	defer c.Close()
	defer server.Close()
	if _, err := server.Write(read); err != nil {
		return
	}
	back.Go(func() { f.answer(c, server) })
	_, _ = io.Copy(server, c.Conn)
}

// answer copies what the backend sends. Clients show certificates when they have the server's part of the handshake,
// which the backend sends at once; it sends more only when it has the client's signature.
func (f *Front) answer(c *client, server net.Conn) {
	defer c.Close()
	data := make([]byte, 32<<10) // that part, and more
	for settled := false; !settled; {
		n, err := server.Read(data)
		if err != nil {
			return
		}
		settled = f.settle(c)
		if _, err := c.Write(data[:n]); err != nil {
			return
		}
	}
	_, _ = io.Copy(c.Conn, server)
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
