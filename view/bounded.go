package view

import (
	"net"
	"sync"
)

// bounded is a listener that hangs up on connections beyond a number: those who wait for their turn would hold memory, too.
type bounded struct {
	net.Listener
	places chan struct{}
}

func newBounded(l net.Listener, n int) *bounded { return &bounded{l, make(chan struct{}, n)} }

// Accept waits for a connection that there is a place for.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		c, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.places <- struct{}{}:
			return &placed{Conn: c, leave: sync.OnceFunc(func() { <-b.places })}, nil
		default:
			_ = c.Close() // who it is hears nothing else either
		}
	}
}

// placed is a connection that gives its place back when it is closed.
type placed struct {
	net.Conn
	leave func()
}

func (p *placed) Close() error {
	err := p.Conn.Close()
	p.leave()
	return err
}
