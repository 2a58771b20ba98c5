package view

import (
	"context"
	"crypto/tls"
	"net"
	"slices"
	"sync"
)

// bounded is a listener that holds no more than a number of connections: those who wait for their turn would hold
// memory, too. Where all places are taken, a new connection gets that of the oldest one that has not shown a secret
// yet, so that a client without one cannot lock out others by opening silent connections. Where all have shown
// one, the new connection is hung up on.
type bounded struct {
	net.Listener
	most int

	mu      sync.Mutex
	n       int       // places taken
	unknown []*placed // of these, those that have shown no secret, the oldest first
}

func newBounded(l net.Listener, most int) *bounded { return &bounded{Listener: l, most: most} }

// Accept waits for a connection that there is a place for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if p := b.place(c); p != nil {
			return p, nil
		}
		_ = c.Close() // who it is hears nothing else either
	}
}

// place finds a place for a connection, nil if there is none.
func (b *bounded) place(c net.Conn) *placed {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == b.most {
		if len(b.unknown) == 0 {
			return nil
		}
		oldest := b.unknown[0]
		b.leave(oldest)
		_ = oldest.Conn.Close() // whoever reads from it notices
	}
	p := &placed{Conn: c, in: b, holds: true}
	b.n++
	b.unknown = append(b.unknown, p)
	return p
}

// leave gives a connection's place back, once. b.mu is held.
func (b *bounded) leave(p *placed) {
	if p.holds {
		p.holds = false
		b.n--
		b.know(p)
	}
}

// know takes a connection off the list of those that have shown no secret. b.mu is held.
func (b *bounded) know(p *placed) {
	b.unknown = slices.DeleteFunc(b.unknown, func(u *placed) bool { return u == p })
}

// placed is a connection that gives its place back when it is closed.
type placed struct {
	net.Conn
	in    *bounded
	holds bool // a place; in.mu guards it
}

func (p *placed) Close() error {
	err := p.Conn.Close()
	p.in.mu.Lock()
	defer p.in.mu.Unlock()
	p.in.leave(p)
	return err
}

// placedKey is where a request's context holds its connection.
type placedKey struct{}

// withConnection is http.Server.ConnContext.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	if t, encrypted := c.(*tls.Conn); encrypted {
		c = t.NetConn()
	}
	return context.WithValue(ctx, placedKey{}, c)
}

// secretShown keeps the place of a request's connection, which has shown a secret, from others.
func secretShown(ctx context.Context) {
	if p, ok := ctx.Value(placedKey{}).(*placed); ok {
		p.in.mu.Lock()
		defer p.in.mu.Unlock()
		p.in.know(p)
	}
}
