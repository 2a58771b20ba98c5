package front

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"
)

// guarded serves a front before a backend that wants a certificate and then sends back what it reads, and returns what
// a client needs that has one.
func guarded(t *testing.T) (address string, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"farm"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	own := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	backend, protocols := listen(t), []string{"h2"}
	f := &Front{Backend: backend.Addr().String()}
	go func() {
		for {
			c, err := backend.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s := tls.Server(c, &tls.Config{Certificates: own, ClientCAs: pool, NextProtos: protocols,
					ClientAuth: tls.RequireAndVerifyClientCert, VerifyConnection: func(tls.ConnectionState) error {
						if !f.Proved(c.RemoteAddr()) {
							return errors.New("not through the front")
						}
						return nil
					}})
				_, _ = io.Copy(s, s)
			}()
		}
	}()
	l := listen(t)
	serveFront(t, f, l)
	return l.Addr().String(), &tls.Config{Certificates: own, RootCAs: pool, ServerName: "farm",
		NextProtos: protocols}
}

// echo has a connection carry a word to the backend and back.
func echo(c net.Conn) error {
	if _, err := c.Write([]byte("word")); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, 4))
	return err
}

// Who begins a handshake, and then a message that never ends, holds nothing open: the next who has a certificate is
// served, and stays.
func TestHalfHandshakes(t *testing.T) {
	address, own := guarded(t)
	honest, err := tls.Dial("tcp", address, own)
	if err != nil || echo(honest) != nil {
		t.Fatal(err)
	}
	defer honest.Close()
	var alive atomic.Int32
	const attacks = MaxOpen + 300
	over := make(chan bool, attacks)
	for i := range attacks {
		c := dial(t, address)
		alive.Add(1)
		hello(t, c, "h2")
		go func() {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				_, _ = c.Write(append([]byte{0x17, 3, 3, 0x40, 0}, make([]byte, 300)...))
			}
			_, err := io.Copy(io.Discard, c)
			alive.Add(-1)
			over <- !errors.Is(err, os.ErrDeadlineExceeded)
		}()
		if i%100 != 99 {
			continue
		}
		if c, err := tls.Dial("tcp", address, own); err != nil {
			t.Errorf("after %d attacks: %v", i+1, err)
		} else if err := errors.Join(echo(c), c.Close()); err != nil {
			t.Errorf("after %d attacks: %v", i+1, err)
		}
	}
	for range attacks {
		if !<-over {
			t.Fatalf("%d half handshakes stay open", alive.Load()+1)
		}
	}
	time.Sleep(patience)
	if err := echo(honest); err != nil {
		t.Errorf("who has shown a certificate is cut off: %v", err)
	}
}

// unsigned cuts off what a client sends of a handshake behind its certificate.
type unsigned struct {
	net.Conn
	cut bool
}

func (c *unsigned) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 5 && !c.cut; {
		size := 5 + int(rest[3])<<8 + int(rest[4])
		if _, err := c.Conn.Write(rest[:size]); err != nil {
			return 0, err
		}
		c.cut, rest = rest[0] == 0x17, rest[size:] // the first that is encrypted
	}
	return len(p), nil
}

// Who shows a certificate, and does not prove to have its key, does not stay.
func TestCertificateAlone(t *testing.T) {
	address, own := guarded(t)
	c := dial(t, address)
	_ = c.SetDeadline(time.Now().Add(5 * patience))
	if err := tls.Client(&unsigned{Conn: c}, own).Handshake(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("it stays open")
	}
}

// A certificate that is shown to the backend past the front does not count.
func TestPast(t *testing.T) {
	f, l := &Front{Backend: "127.0.0.1:1"}, listen(t)
	serveFront(t, f, l)
	if c := dial(t, l.Addr().String()); f.Proved(c.LocalAddr()) {
		t.Error("a connection that the front has not passed on counts")
	}
}

// Connections of many addresses without certificates are bounded together.
func TestManyAddresses(t *testing.T) {
	address, own := guarded(t)
	var alive atomic.Int32
	for i := range MaxAllWaiting + 200 {
		from := &net.TCPAddr{IP: net.ParseIP(fmt.Sprintf("127.0.1.%d", 1+i%200))}
		c, err := (&net.Dialer{LocalAddr: from}).Dial("tcp", address)
		if err != nil {
			t.Skip(err) // systems differ in whether all of these are their own
		}
		defer c.Close()
		alive.Add(1)
		go func() {
			_, _ = io.Copy(io.Discard, c)
			alive.Add(-1)
		}()
	}
	if c, err := tls.Dial("tcp", address, own); err != nil {
		t.Error(err)
	} else if err := errors.Join(echo(c), c.Close()); err != nil {
		t.Error(err)
	}
	for deadline := time.Now().Add(patience / 2); alive.Load() > MaxAllWaiting; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections wait", alive.Load())
		}
	}
}
