package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
	"vksplat/farmd/registry"
	"vksplat/internal/fault"
)

// maxRequest bounds what somebody may send who has no pass yet, in bytes.
const maxRequest = 16 << 10

// enrolServer answers those who want to join or to renew.
type enrolServer struct {
	registry *registry.Registry
	config   *tls.Config
	http     *http.Server
	conns    chan net.Conn
	closed   chan struct{}
}

func startEnrol(reg *registry.Registry) (*enrolServer, error) {
	cert, err := reg.Server()
	if err != nil {
		return nil, err
	}
	s := &enrolServer{registry: reg, conns: make(chan net.Conn), closed: make(chan struct{})}
	s.config = &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		NextProtos:   []string{pass.EnrolProtocol},
		ClientAuth:   tls.VerifyClientCertIfGiven,
		ClientCAs:    poolOf(reg),
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+pass.JoinPath, s.join)
	mux.HandleFunc("POST "+pass.RenewPath, s.renew)
	s.http = &http.Server{
		Handler:        http.MaxBytesHandler(mux, maxRequest),
		ReadTimeout:    10 * time.Second,
		WriteTimeout:   10 * time.Second,
		IdleTimeout:    time.Second,
		MaxHeaderBytes: maxRequest,
		ErrorLog:       log.New(io.Discard, "", 0), // strangers that break off
	}
	go func() { _ = s.http.Serve(s) }()
	return s, nil
}

// poolOf holds the farm's authority.
func poolOf(reg *registry.Registry) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(reg.CA())
	return pool
}

// take serves a connection, and returns when it has ended.
func (s *enrolServer) take(conn net.Conn) {
	c := &served{Conn: tls.Server(conn, s.config), done: make(chan struct{})}
	if c.HandshakeContext(context.Background()) != nil { // conn has a deadline
		return
	}
	select {
	case s.conns <- c:
		<-c.done
	case <-s.closed:
	}
}

// served says when a connection is closed.
type served struct {
	*tls.Conn
	once sync.Once
	done chan struct{}
}

func (c *served) Close() error {
	defer c.once.Do(func() { close(c.done) })
	return c.Conn.Close()
}

// Accept, Close and Addr make the server a listener for the connections that it takes.
func (s *enrolServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *enrolServer) Close() error   { return nil }
func (s *enrolServer) Addr() net.Addr { return &net.TCPAddr{} }

func (s *enrolServer) close() {
	close(s.closed)
	closeServer(s.http)
}

// closeServer ends a server, of requests under way after a second.
func closeServer(s *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if s.Shutdown(ctx) != nil {
		_ = s.Close()
	}
}

func (s *enrolServer) join(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ask pass.Request) (*x509.Certificate, error) {
		return s.registry.Join(ask.Secret, ask.Name, ask.CSR)
	})
}

func (s *enrolServer) renew(w http.ResponseWriter, r *http.Request) {
	s.answer(w, r, func(ask pass.Request) (*x509.Certificate, error) {
		if len(r.TLS.VerifiedChains) == 0 {
			return nil, errors.New("show the pass that is to be renewed")
		}
		cert := r.TLS.VerifiedChains[0][0]
		who, err := pass.Of(cert)
		if err == nil {
			err = s.registry.Welcome(who, cert)
		}
		if err != nil {
			return nil, err
		}
		return s.registry.Renew(who, ask.CSR)
	})
}

// refusal says why somebody has got no certificate. What went wrong with the server's own files is for whoever looks
// after it.
func refusal(what string, err error) pass.Reply {
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case isFull(err):
		return pass.Reply{Error: flow.NoRoom, Hint: "the farm's administrator must make room on the server; then use " +
			"the token again"}
	case errors.As(err, &file), errors.As(err, &link):
		fmt.Fprintf(os.Stderr, "vksplat-farmd: %s: %v\n", what, err)
		return pass.Reply{Error: "the server cannot read or write its files", Hint: "see the messages of vksplat-farmd"}
	}
	return pass.Reply{Error: err.Error(), Hint: fault.Hint(err)}
}

// answer reads a request and writes the certificate that give makes, or why it does not.
func (s *enrolServer) answer(w http.ResponseWriter, r *http.Request,
	give func(pass.Request) (*x509.Certificate, error)) {
	var ask pass.Request
	var cert *x509.Certificate
	err := json.NewDecoder(r.Body).Decode(&ask)
	if err == nil {
		cert, err = give(ask)
	}
	reply := pass.Reply{CA: s.registry.CA().Raw, Namespace: namespace}
	if err != nil {
		reply = refusal(r.URL.Path[1:], err)
		w.WriteHeader(http.StatusForbidden)
	} else {
		reply.Certificate = cert.Raw
		if who, err := pass.Of(cert); err == nil {
			fmt.Fprintf(os.Stderr, "vksplat-farmd: %s by %s\n", r.URL.Path[1:], who.Describe())
		}
	}
	_ = json.NewEncoder(w).Encode(reply)
}
