package lab

import (
	"io"
	"net"
	"sync"
	"time"
)

// Proxy is a network that can fail: what connects to it is connected to another address.
type Proxy struct {
	listener net.Listener
	to       string
	lock     sync.RWMutex // held to keep bytes from flowing
	conns    sync.Map     // of the side that connected, by that
}

// NewProxy listens at a free port of this machine until Close.
func NewProxy(to string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: l, to: to}
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go p.forward(in)
		}
	}()
	return p, nil
}

// Addr is where it listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close takes no more connections.
func (p *Proxy) Close() error { return p.listener.Close() }

func (p *Proxy) forward(in net.Conn) {
	defer in.Close()
	p.lock.RLock()
	out, err := net.Dial("tcp", p.to)
	p.lock.RUnlock()
	if err != nil {
		return
	}
	defer out.Close()
	p.conns.Store(in, out)
	defer p.conns.Delete(in)
	go p.copy(out, in)
	p.copy(in, out)
}

// copy hands bytes on. They wait while the network is frozen.
func (p *Proxy) copy(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.lock.RLock()
		_, writeErr := to.Write(buffer[:n])
		p.lock.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}

// Freeze stops all bytes for a while; cut then breaks the connections, too.
func (p *Proxy) Freeze(d time.Duration, cut bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	time.Sleep(d)
	if cut {
		p.conns.Range(func(in, out any) bool {
			_, _ = in.(io.Closer).Close(), out.(io.Closer).Close()
			return true
		})
	}
}
