package wire_test

import (
	"bytes"
	"context"
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
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"

	"vksplat/farm/flow"
	"vksplat/farm/wire"
	"vksplat/farm/wire/wiretest"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

type (
	query   = *workflowservice.QueryWorkflowRequest
	answer  = *workflowservice.QueryWorkflowResponse
	unasked = *workflowservice.DescribeNamespaceRequest
	nothing = *workflowservice.DescribeNamespaceResponse
)

// TestCall carries a value there and back, with the namespace for proxies and a deadline for the server. Large answers
// arrive.
func TestCall(t *testing.T) {
	s := wiretest.Start(t)
	large := strings.Repeat("ü", 5<<20)
	wiretest.Handle(s, func(ctx context.Context, q query) (answer, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		until, has := ctx.Deadline()
		if q.GetNamespace() != "splats" || q.GetQuery().GetQueryType() != "state" ||
			fmt.Sprint(md.Get("temporal-namespace")) != "[splats]" || !has || time.Until(until) > wire.CallFor {
			t.Errorf("%v, %v, until %v", q, md, until)
		}
		return answer(&workflowservice.QueryWorkflowResponse{QueryResult: &commonpb.Payloads{
			Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{"encoding": []byte("json/plain")},
				Data: []byte(`"` + large + `"`)}}}}), nil
	})
	c := wire.Open(s.Address, "splats", nil)
	defer c.Close()
	var r wire.Queried
	var text string
	err := c.Call(t.Context(), &wire.Query{Of: &wire.Execution{Workflow: "j"}, Query: &wire.Kind{Name: "state"}}, &r)
	if err != nil || r.Result.Read(&text) != nil || text != large {
		t.Errorf("%v, %d bytes", err, len(text))
	}
}

// TestErrors wants errors of the server to come with their code, their words and what they say besides.
func TestErrors(t *testing.T) {
	s := wiretest.Start(t)
	var say error
	wiretest.Handle(s, func(context.Context, unasked) (nothing, error) { return nil, say })
	c := wire.Open(s.Address, "splats", nil)
	defer c.Close()
	for _, k := range []struct {
		err  error
		want wire.Error
		away bool
	}{
		{serviceerror.NewNotFound("no such job: Bäume, 100 %"), wire.Error{Code: wire.NotFound,
			Text: "no such job: Bäume, 100 %"}, false},
		{serviceerror.NewNamespaceNotFound("splats"), wire.Error{Code: wire.NotFound,
			Text: "Namespace splats is not found.", NoNamespace: true}, false},
		{serviceerror.NewPermissionDenied("Request unauthorized.", "a pass of role view"), wire.Error{Code: wire.Denied,
			Text: "Request unauthorized.", Reason: "a pass of role view"}, false},
		{serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "a", "b"), wire.Error{Code: wire.Exists,
			Text: "it runs"}, false},
		{serviceerror.NewInvalidArgument("bad"), wire.Error{Code: wire.InvalidArgument, Text: "bad"}, false},
		{serviceerror.NewUnavailable("starting"), wire.Error{Code: wire.Unavailable, Text: "starting"}, true},
		{serviceerror.NewInternal("oops"), wire.Error{Code: wire.Internal, Text: "oops"}, true},
	} {
		say = k.err
		err := c.Once(within(t, time.Minute), &wire.DescribeNamespace{}, nil)
		var got *wire.Error
		if !errors.As(err, &got) || *got != k.want || wire.IsAway(err) != k.away {
			t.Errorf("%v: %#v, away %v", k.err, err, wire.IsAway(err))
		}
	}
	err := c.Once(within(t, time.Minute), &wire.Poll{}, nil) // nobody handles it
	if wire.CodeOf(err) != wire.Unimplemented || wire.IsAway(nil) || wire.CodeOf(nil) != wire.OK {
		t.Errorf("%#v", err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestAgain makes a call again while the server is away or starts, on a new connection, and not after an answer.
func TestAgain(t *testing.T) {
	s := wiretest.Start(t)
	var asked atomic.Int64
	wiretest.Handle(s, func(context.Context, unasked) (nothing, error) {
		switch asked.Add(1) {
		case 2:
			return nil, serviceerror.NewUnavailable("starting")
		case 4:
			return nil, serviceerror.NewPermissionDenied("no", "")
		case 5:
			return nil, serviceerror.NewDeadlineExceeded("busy")
		}
		return &workflowservice.DescribeNamespaceResponse{}, nil
	})
	c := wire.Open(s.Address, "splats", nil)
	defer c.Close()
	for i := range 2 {
		if err := c.Call(t.Context(), &wire.DescribeNamespace{}, nil); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
		s.Down()
		time.AfterFunc(300*time.Millisecond, s.Up)
	}
	err := c.Call(t.Context(), &wire.DescribeNamespace{}, nil)
	if wire.CodeOf(err) != wire.Denied || asked.Load() != 4 {
		t.Errorf("%v after %d calls", err, asked.Load())
	}
	if err := c.Call(t.Context(), &wire.DescribeNamespace{}, nil); wire.CodeOf(err) != wire.Slow || asked.Load() != 5 {
		t.Errorf("%v after %d calls", err, asked.Load())
	}
	s.Down()
	began := time.Now()
	ctx := within(t, time.Second)
	err = c.Call(ctx, &wire.DescribeNamespace{}, nil)
	if wire.CodeOf(err) != wire.Unavailable || !strings.HasPrefix(flow.Away(err), "dial tcp ") ||
		time.Since(began) < time.Second {
		t.Errorf("a server that is away: %v, after %v", err, time.Since(began))
	}
}

// TestSlow ends calls in time that the server keeps, and does not make them again.
func TestSlow(t *testing.T) {
	s := wiretest.Start(t)
	var asked atomic.Int64
	wiretest.Handle(s, func(ctx context.Context, _ unasked) (nothing, error) {
		asked.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	c := wire.Open(s.Address, "splats", nil)
	defer c.Close()
	err := c.Call(within(t, 200*time.Millisecond), &wire.DescribeNamespace{}, nil)
	if wire.CodeOf(err) != wire.Slow || asked.Load() != 1 {
		t.Errorf("%v after %d calls", err, asked.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if err := c.Once(ctx, &wire.DescribeNamespace{}, nil); wire.CodeOf(err) != wire.Canceled {
		t.Error(err)
	}
}

// authority makes certificates.
func authority(t *testing.T) (pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der := must.Get(x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key))(t)
	leaf := must.Get(x509.ParseCertificate(der))(t)
	pool = x509.NewCertPool()
	pool.AddCert(leaf)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// TestTLS speaks with both certificates, and tells at once what waiting does not help.
func TestTLS(t *testing.T) {
	own, pool := authority(t)
	other, otherPool := authority(t)
	s := wiretest.Start(t, grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS13,
		VerifyConnection: func(state tls.ConnectionState) error {
			if !bytes.Equal(state.PeerCertificates[0].Raw, own.Certificate[0]) {
				return errors.New("the pass was revoked")
			}
			return nil
		}})))
	for _, k := range []struct {
		name string
		tls  *tls.Config
		want string // in the words for people; "": it works
	}{
		{"as it should be", &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{own}}, ""},
		{"a foreign server", &tls.Config{RootCAs: otherPool, Certificates: []tls.Certificate{own}}, "not the farm of"},
		{"a revoked pass", &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{other}}, "does not accept"},
	} {
		for range 10 { // the server's word may come after the request
			c := wire.Open(s.Address, "splats", k.tls)
			began := time.Now()
			err := c.Call(t.Context(), &wire.DescribeNamespace{}, nil)
			c.Close()
			if k.want == "" && err != nil || k.want != "" && (err == nil || !flow.NeedsPass(err) ||
				!strings.Contains(flow.Away(err), k.want)) || time.Since(began) > wire.CallFor/2 {
				t.Errorf("%s: %v, after %v", k.name, err, time.Since(began))
			}
		}
	}
}

// TestOddAnswers takes nothing for an answer that is none, and ends.
func TestOddAnswers(t *testing.T) {
	for name, k := range map[string]struct {
		serve http.HandlerFunc
		code  wire.Code
	}{
		"a proxy":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(502) }, wire.Unavailable},
		"forbidden": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, wire.Denied},
		"no status": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write(make([]byte, 5))
		}, wire.Unavailable},
		"half a message": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write([]byte{0, 0, 0, 0, 9, 1})
			w.Header().Set("Grpc-Status", "0")
		}, wire.Unavailable},
		"no message": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Status", "0")
		}, wire.Unimplemented},
		"a page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		}, wire.Unavailable},
		"rubbish": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write([]byte{0, 0, 0, 0, 2, 0x0a, 9})
			w.Header().Set("Grpc-Status", "0")
		}, wire.Internal},
		"cut off": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte{0, 0, 0})
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, wire.Unavailable},
		"odd details": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Status", "7")
			w.Header().Set("Grpc-Status-Details-Bin", "!")
		}, wire.Unavailable},
	} {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/grpc")
			k.serve(w, r)
		}))
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		c := wire.Open(s.Listener.Addr().String(), "splats", nil)
		err := c.Once(within(t, time.Minute), &wire.Query{}, &wire.Queried{})
		c.Close()
		s.Close()
		if wire.CodeOf(err) != k.code {
			t.Errorf("%s: %v, %v", name, wire.CodeOf(err), err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // it speaks another language
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "220 mail.example ESMTP\r\n")
			_ = conn.Close()
		}
	}()
	c := wire.Open(l.Addr().String(), "splats", nil)
	defer c.Close()
	if err := c.Once(within(t, time.Minute), &wire.Query{}, nil); wire.CodeOf(err) != wire.Unavailable {
		t.Errorf("a mail server: %v, %v", wire.CodeOf(err), err)
	}
}

// TestGoesNowhereElse tells no other server what this one was to be told, and takes no more of an answer than it can
// hold.
func TestGoesNowhereElse(t *testing.T) {
	var elsewhere atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/grpc")
		switch {
		case r.URL.Path == "/elsewhere":
			elsewhere.Add(1)
		case strings.HasSuffix(r.URL.Path, "/QueryWorkflow"):
			_, _ = w.Write([]byte{0, 0x7f, 0xff, 0xff, 0xff})
			for part := make([]byte, 1<<20); ; {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
		default:
			http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
		}
	}))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	c := wire.Open(s.Listener.Addr().String(), "splats", nil)
	defer c.Close()
	err := c.Once(within(t, time.Minute), &wire.DescribeNamespace{}, nil)
	if wire.CodeOf(err) != wire.Unavailable || !strings.Contains(err.Error(), "307") || elsewhere.Load() != 0 {
		t.Errorf("sent elsewhere: %v, %d calls there", err, elsewhere.Load())
	}
	err = c.Once(within(t, time.Minute), &wire.Query{}, &wire.Queried{})
	if wire.CodeOf(err) != wire.ResourceExhausted || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("an endless answer: %v", err)
	}
}

// TestTLSFiles trusts the system's roots where that is asked for, and refuses files that hold nothing of use, by the
// name of the setting.
func TestTLSFiles(t *testing.T) {
	if c, err := (wire.TLSFiles{CA: wire.SystemRoots}).Config(); err != nil || c == nil || c.RootCAs != nil {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := (wire.TLSFiles{}).Config(); c != nil || err != nil {
		t.Errorf("without files: %v, %v", c, err)
	}
	for _, f := range []wire.TLSFiles{{CA: "/nowhere"}, {CA: "conn_test.go"}, {Cert: "conn_test.go"}, {Key: "/nowhere"}} {
		if _, err := f.Config(); !errors.Is(err, fault.ErrUsage) || !strings.Contains(err.Error(), "tls-") {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
