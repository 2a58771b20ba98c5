package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"reflect"
	"strconv"
	"sync/atomic"
	"time"

	"vksplat/farm/flow"
	"vksplat/internal/fault"
)

// Conn is a connection to a server. It is made anew whenever it was lost.
type Conn struct {
	namespace string
	identity  string // what this process calls itself, for people
	url       string
	way       *http.Transport
	since     atomic.Value
}

// Open makes a connection, which begins with the first call. Without TLS it is not encrypted.
func Open(address, namespace string, secure *tls.Config) *Conn {
	host, _ := os.Hostname() // it is for people
	c := &Conn{namespace: namespace, identity: fmt.Sprintf("%d@%s", os.Getpid(), host), url: "http://" + address}
	t := &http.Transport{Protocols: new(http.Protocols), DisableCompression: true, TLSHandshakeTimeout: CallFor,
		DialContext: (&net.Dialer{Timeout: CallFor / 2}).DialContext,
		// a server that vanished without a word
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second}}
	if secure == nil {
		t.Protocols.SetUnencryptedHTTP2(true)
	} else {
		c.url = "https://" + address
		t.Protocols.SetHTTP2(true)
		t.TLSClientConfig, t.Proxy = secure, http.ProxyFromEnvironment
	}
	c.way = t
	return c
}

// Close ends a connection that no call uses.
func (c *Conn) Close() { c.way.CloseIdleConnections() }

// Since tells times apart between which the server was away, as far as its answers say; "" where none did.
func (c *Conn) Since() string {
	since, _ := c.since.Load().(string)
	return since
}

// CallFor is how long Call tries.
const CallFor = 10 * time.Second

// Call makes a call, again and again while the server is away or has too much to do. The answer may be nil.
func (c *Conn) Call(ctx context.Context, req Request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, CallFor)
	defer cancel()
	var before error // what the server was away by
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		err := c.Once(ctx, req, answer)
		if err != nil && before != nil && ctx.Err() != nil {
			return before
		}
		if !IsAway(err) || CodeOf(err) == Slow || flow.NeedsPass(err) {
			return err
		}
		before = err
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

const (
	service = "/temporal.api.workflowservice.v1.WorkflowService/"
	head    = 5 // bytes before a message: whether it is compressed, and its length
	// mostAnswer bounds an answer in bytes. That of a workflow of 500 tasks, with what each said last, has millions.
	mostAnswer = 64 << 20
)

// Once makes a call. The context has a deadline, which the server is told.
func (c *Conn) Once(ctx context.Context, req Request, answer any) error {
	message := reflect.ValueOf(req).Elem()
	for name, value := range map[string]string{"Namespace": c.namespace, "Identity": c.identity} {
		if f := message.FieldByName(name); f.IsValid() {
			f.SetString(value)
		}
	}
	body := append(make([]byte, head), encode(message)...)
	binary.BigEndian.PutUint32(body[1:], uint32(len(body)-head))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+service+req.method(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"vksplat"},
		"Temporal-Namespace": {c.namespace}} // proxies route by it
	if until, is := ctx.Deadline(); is {
		r.Header.Set("Grpc-Timeout", strconv.FormatInt(max(time.Until(until).Milliseconds(), 1), 10)+"m")
	}
	resp, err := c.way.RoundTrip(r) // an http.Client would tell another server, where this one sends it elsewhere
	if err != nil {
		return lost(ctx, err)
	}
	defer resp.Body.Close()
	if since := resp.Header.Get(flow.SinceHeader); since != "" {
		c.since.Store(since)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer+1))
	if err != nil {
		return lost(ctx, err)
	}
	if len(data) > mostAnswer { // it has not ended
		return &Error{Code: Internal, Text: "the answer is too long"}
	}
	trailer := resp.Trailer
	if resp.Header.Get("Grpc-Status") != "" { // an error without a message comes with the header alone
		trailer = resp.Header
	} else if resp.StatusCode != http.StatusOK {
		return &Error{Code: codeOfHTTP(resp.StatusCode), Text: "the server says " + resp.Status}
	}
	if err := errorOf(trailer); err != nil {
		return err
	}
	if len(data) < head || data[0] != 0 || int(binary.BigEndian.Uint32(data[1:])) != len(data)-head {
		return &Error{Code: Internal, Text: "the answer is damaged"}
	}
	if answer == nil {
		return nil
	}
	if err := decode(data[head:], reflect.ValueOf(answer).Elem(), 0); err != nil {
		return &Error{Code: Internal, Text: "the answer is damaged: " + err.Error()}
	}
	return nil
}

// TLSFiles name files of PEM, for a cluster that has no passes. In place of CA may be SystemRoots.
type TLSFiles struct{ Cert, Key, CA string }

// SystemRoots are the authorities that the system trusts. A file of this name is ./system.
const SystemRoots = "system"

// Config is what the files say: nil where none is named.
func (f TLSFiles) Config() (*tls.Config, error) {
	if f.Cert+f.Key+f.CA == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" && f.CA != SystemRoots {
		data, err := os.ReadFile(f.CA)
		if c.RootCAs = x509.NewCertPool(); err == nil && !c.RootCAs.AppendCertsFromPEM(data) {
			err = errors.New("it has no certificate")
		}
		if err != nil {
			return nil, fault.Usagef("give a file with PEM certificates", "%s %s: %w", fault.Setting("tls-ca"), f.CA,
				err)
		}
	}
	if f.Cert+f.Key != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fault.Usagef("give PEM files of one certificate and its key", "%s: %w",
				fault.Named("tls-cert", "tls-key"), err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
