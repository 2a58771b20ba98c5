package wire

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"vksplat/farm/flow"
	"vksplat/internal/fault"
)

// Conn is a connection to a server. It reconnects by itself.
type Conn struct {
	namespace string
	identity  string // what this process calls itself, for people
	url       string
	way       *http.Transport
	since     atomic.Value // what Since returns, a string
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

// Since says since when the server has been there, as in its last answer: the text changes when it was away. It is ""
// for a server that does not say so.
func (c *Conn) Since() string {
	since, _ := c.since.Load().(string)
	return since
}

// CallFor is how long Call tries.
const CallFor = 10 * time.Second

// Call makes a call, again and again while the server is away or has too much to do. The answer may be nil.
func (c *Conn) Call(ctx context.Context, req Request, answer proto.Message) error {
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
	// mostAnswer bounds an answer in bytes. That of a workflow of 500 tasks, with what each said last, has millions.
	mostAnswer = 64 << 20
)

// Once makes a call. The context has a deadline, which goes to the server.
func (c *Conn) Once(ctx context.Context, req Request, answer proto.Message) error {
	message := req.ProtoReflect()
	for name, value := range map[protoreflect.Name]string{"namespace": c.namespace, "identity": c.identity} {
		if f := message.Descriptor().Fields().ByName(name); f != nil {
			message.Set(f, protoreflect.ValueOfString(value))
		}
	}
	body, err := proto.Marshal(req)
	if err != nil {
		return err
	}
	call := connect.NewClient[[]byte, []byte](c, c.url+service+req.method(), connect.WithGRPC(),
		connect.WithCodec(bytesCodec{}), connect.WithReadMaxBytes(mostAnswer),
		connect.WithAcceptCompression("gzip", nil, nil)) // nothing is to be compressed
	r := connect.NewRequest(&body)
	r.Header().Set("Temporal-Namespace", c.namespace) // proxies route by it
	resp, err := call.CallUnary(ctx, r)
	if err != nil {
		return errorOf(ctx, err)
	}
	if since := resp.Header().Get(flow.SinceHeader); since != "" {
		c.since.Store(since)
	}
	if answer == nil {
		return nil
	}
	if err := proto.Unmarshal(*resp.Msg, answer); err != nil {
		return &Error{Code: Internal, Text: "the answer is damaged: " + err.Error()}
	}
	return nil
}

// Do implements connect.HTTPClient. An http.Client would tell another server, where this one sends it elsewhere.
func (c *Conn) Do(r *http.Request) (*http.Response, error) { return c.way.RoundTrip(r) }

// bytesCodec passes on messages that are bytes already. Details of errors are of connect's own.
type bytesCodec struct{}

func (bytesCodec) Name() string { return "proto" }

func (bytesCodec) Marshal(message any) ([]byte, error) { return *message.(*[]byte), nil }

func (bytesCodec) Unmarshal(data []byte, to any) error {
	if own, is := to.(proto.Message); is {
		return proto.Unmarshal(data, own)
	}
	*to.(*[]byte) = bytes.Clone(data)
	return nil
}

// TLSFiles name files of PEM, for a cluster that has no passes. In place of CA may be SystemRoots.
type TLSFiles struct{ Cert, Key, CA string }

// SystemRoots are the authorities that the system trusts. A file of this name is ./system.
const SystemRoots = "system"

// Config loads the files; nil if none is named.
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
