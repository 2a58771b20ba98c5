package view

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"vksplat/internal/fault"
)

// Limits of a server. What is served has no size of its own that these could be derived from.
const (
	maxConnections = 64               // at a time; a browser opens six
	maxHeaderBytes = 16 << 10         // of a request, its first line included
	headerSlack    = 4 << 10          // that net/http reads beyond its limit
	headerTimeout  = 5 * time.Second  // to send a request's header
	readTimeout    = 30 * time.Second // to send all of a request
	writeTimeout   = 30 * time.Second // in which some of an answer must be taken
	idleTimeout    = 2 * time.Minute  // between requests of a connection
	endTimeout     = time.Second      // for what is under way when the server ends
)

type ServerOptions struct {
	Host     string // an address or a name of this machine; "" is 127.0.0.1, which no other machine reaches
	Port     int    // 0 takes any that is free
	CertFile string // of TLS, PEM, with KeyFile; "" serves without
	KeyFile  string
}

// Server is a web server for the one who knows its address, which holds a random token.
type Server struct {
	listener net.Listener
	scheme   string
	host     string // as given, "" for the default
	loopback bool   // no other machine reaches it

	token string // the first request shows it
	// the same for one request: programs' arguments, where it stands, are no secret on a machine of several users
	once    string
	used    atomic.Bool
	session string // later requests show it, as a cookie
	// path above all that is served, with a slash at both ends: cookies know paths but no ports, and other servers of
	// this machine must not get ours
	prefix string

	mu       sync.RWMutex            // guards handlers
	handlers map[string]http.Handler // of GET and HEAD, by name below prefix
	actions  map[string]http.Handler // of POST
}

// Listen takes the port. Nothing is answered before Serve.
func Listen(o ServerOptions) (*Server, error) {
	s := &Server{scheme: "http", host: o.Host, token: secret(), once: secret(), session: secret(),
		handlers: map[string]http.Handler{}, actions: map[string]http.Handler{}}
	id := make([]byte, 8)
	fill(id)
	s.prefix = "/" + hex.EncodeToString(id) + "/"
	var config *tls.Config
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, &fault.Error{Op: "load certificate", Path: o.CertFile, Err: err,
				Hint: "give a certificate and its private key, both PEM files"}
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		s.scheme = "https"
	}
	host := o.Host
	if host == "" {
		host = "127.0.0.1"
	}
	address := net.JoinHostPort(host, strconv.Itoa(o.Port))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &fault.Error{Op: "listen", Path: address, Err: cause(err), Kind: listenKind(err),
			Hint: "name another port, or none to take one that is free, and as " + fault.Setting("host") +
				" an address of this machine"}
	}
	if tcp, ok := listener.Addr().(*net.TCPAddr); ok {
		s.loopback = tcp.IP.IsLoopback()
	}
	s.listener = newBounded(listener, maxConnections)
	if config != nil {
		s.listener = tls.NewListener(s.listener, config)
	}
	return s, nil
}

// listenKind tells a port that may be free later from an address that this machine does not have.
func listenKind(err error) error {
	var name *net.DNSError
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.As(err, &name) && name.IsNotFound {
		return fault.ErrUsage
	}
	return fault.ErrTryAgain
}

// cause strips what the message around an error of the network names already.
func cause(err error) error {
	var op *net.OpError
	if !errors.As(err, &op) {
		return err
	}
	var call *os.SyscallError
	if errors.As(op.Err, &call) {
		return call.Err
	}
	return op.Err
}

// fill makes random bytes. The system's source never fails: Go ends the program if it does.
func fill(b []byte) { _, _ = rand.Read(b) }

// secret makes a text of 256 random bits that addresses and cookies can hold.
func secret() string {
	b := make([]byte, 32)
	fill(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Handle serves what is at name, relative to the session's address, instead of what was there; "" is the page that the
// browser is sent to. A name like "show/" serves what is below it; Below says what that is.
func (s *Server) Handle(name string, h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handlers[name] = h
}

// HandlePost has requests of a page of this server change something. It is registered as Handle does it, but before
// Serve. The handler bounds the body; how long that takes is bounded here.
func (s *Server) HandlePost(name string, h http.Handler) { s.actions[name] = h }

func (s *Server) Below(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, s.prefix) }

// Public reports whether other machines reach the server.
func (s *Server) Public() bool { return !s.loopback }

// Encrypted reports whether the server speaks TLS.
func (s *Server) Encrypted() bool { return s.scheme == "https" }

// URL is the address for the user. It holds the token.
func (s *Server) URL() string { return s.address(s.token) }

func (s *Server) URLOnce() string { return s.address(s.once) }

func (s *Server) address(token string) string {
	host, port := s.host, ""
	if tcp, ok := s.listener.Addr().(*net.TCPAddr); ok {
		port = strconv.Itoa(tcp.Port)
		switch {
		case host == "":
			host = tcp.IP.String()
		case tcp.IP.IsUnspecified():
			host = ownAddress()
		}
	}
	u := url.URL{Scheme: s.scheme, Host: net.JoinHostPort(host, port), Path: "/", RawQuery: tokenKey + "=" + token}
	return u.String()
}

// ownAddress is an address of this machine that others may reach: the first that is neither of this machine alone nor
// of one cable.
func ownAddress() string {
	list, _ := net.InterfaceAddrs() // without a list, the one that always is
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// Serve answers until ctx ends, which is no error. The server is of no use afterwards.
func (s *Server) Serve(ctx context.Context) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true) // a connection is a request at a time, so that the bound on connections is one on requests
	server := &http.Server{Handler: s.guarded(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout,
		IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx }, // also of connections that were taken over
		ConnContext: withConnection, MaxHeaderBytes: maxHeaderBytes - headerSlack, Protocols: protocols,
		ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.listener) }()
	select {
	case err := <-done:
		return &fault.Error{Op: "serve", Path: s.listener.Addr().String(), Err: cause(err), Kind: fault.ErrTryAgain}
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	if err := server.Shutdown(end); err != nil {
		return server.Close() // some browser still loads: it has lost us
	}
	return nil
}

// Close gives the port back where Serve was never called.
func (s *Server) Close() error { return s.listener.Close() }
