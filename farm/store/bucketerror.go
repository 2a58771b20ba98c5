package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/minio/minio-go/v7"

	"vksplat/internal/fault"
)

// errIdle is the error of a request without traffic for long.
var errIdle = errors.New("the server does not respond")

// idleWithin bounds the silence of a request with content.
const idleWithin = time.Minute

// watch cancels a request that hangs.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	within atomic.Int64 // nanoseconds of silence
	heard  func() bool
}

func (p *patience) newWatch() (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(context.Background())
	w := &watch{ctx: ctx, cancel: cancel, timer: time.AfterFunc(idleWithin, func() { cancel(errIdle) })}
	w.within.Store(int64(idleWithin))
	w.heard = context.AfterFunc(p.leaving, func() { w.within.Store(int64(leaveWithin)); w.touch() })
	return ctx, w
}

func (w *watch) touch() { w.timer.Reset(time.Duration(w.within.Load())) }
func (w *watch) end()   { w.heard(); w.timer.Stop(); w.cancel(nil) }

// cause is the cause of a failed request: err, or errIdle.
func (w *watch) cause(err error) error {
	if err != nil && errors.Is(context.Cause(w.ctx), errIdle) {
		return errIdle
	}
	return err
}

// content is a body whose bytes are signs of life. It has no Seek, so the client does not retry by itself.
type content struct {
	io.Reader
	watch *watch
}

// Read implements io.Reader.
func (c content) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if n > 0 {
		c.watch.touch()
	}
	return n, err
}

// answer is the error response of a server.
func answer(err error) (a minio.ErrorResponse, is bool) {
	is = errors.As(err, &a)
	return a, is
}

func isMissing(err error) bool {
	a, is := answer(err)
	return is && a.StatusCode == http.StatusNotFound && a.Code != minio.NoSuchBucket && a.Code != minio.NoSuchUpload
}

// hasStatus reports responses of a status.
func hasStatus(code int) func(error) bool {
	return func(err error) bool {
		a, is := answer(err)
		return is && a.StatusCode == code
	}
}

// isTaken reports a failed condition of a write.
var isTaken = hasStatus(http.StatusPreconditionFailed)

// isRefused reports that credentials may have expired. Responses without a body have only a status: 400 is Amazon's for
// an expired token.
func isRefused(err error) bool {
	a, is := answer(err)
	return is && (a.StatusCode == http.StatusForbidden || a.Code == expiredToken || a.Code == badRequest)
}

const (
	expiredToken = "ExpiredToken"
	badRequest   = "400 Bad Request" // of an answer without content
)

// busy are error codes that mean: later.
var busy = []string{"SlowDown", "SlowDownRead", "SlowDownWrite", "InternalError", "RequestTimeout",
	"ServiceUnavailable", "Throttling", "ThrottlingException", "RequestLimitExceeded",
	"OperationAborted", "ConditionalRequestConflict", "BadDigest", "XAmzContentSHA256Mismatch", "IncompleteBody"}

// isAway reports whether an error is of the network, or of a server that is down or busy.
func isAway(err error) bool {
	if a, is := answer(err); is {
		later := []int{http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
			http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
		return slices.Contains(later, a.StatusCode) || slices.Contains(busy, a.Code)
	}
	var request *url.Error
	var line *net.OpError
	if isUntrusted(err) || isPlain(err) {
		return false
	}
	return errors.Is(err, errIdle) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, context.DeadlineExceeded) || errors.As(err, &request) || errors.As(err, &line)
}

func isUntrusted(err error) bool {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	return errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// isPlain reports a server that speaks http for an https endpoint.
func isPlain(err error) bool {
	return errors.Is(err, http.ErrSchemeMismatch) || errors.As(err, new(tls.RecordHeaderError))
}

// wantsTLS reports a server that speaks https for an http endpoint. Most say so in their own words.
func wantsTLS(err error) bool {
	a, _ := answer(err)
	return a.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(a.Message), "http request") &&
		strings.Contains(strings.ToLower(a.Message), "https")
}

// isFullBucket reports a full server or quota.
func isFullBucket(err error) bool {
	a, _ := answer(err)
	return a.StatusCode == http.StatusInsufficientStorage ||
		slices.Contains([]string{"XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"}, a.Code)
}

// explain adds a cause and a hint to an error of the server whose root has a label. Other errors stay as they are.
func explain(op, label, key string, err error) error {
	var known *fault.Error
	var place *fs.PathError
	if err == nil || errors.As(err, &known) || errors.As(err, &place) || errors.Is(err, ErrExists) {
		return err
	}
	if isMissing(err) || errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: op, Path: key, Err: fs.ErrNotExist}
	}
	a, _ := answer(err)
	for _, e := range explanations {
		if !slices.Contains(e.codes, a.Code) && (e.is == nil || !e.is(err)) {
			continue
		}
		hint := strings.ReplaceAll(e.hint, "ROOTS", "the file of "+fault.Setting("roots"))
		if a.Region != "" {
			hint = strings.Replace(hint, "the bucket's region", fmt.Sprintf("region = %q", a.Region), 1)
		}
		return &fault.Error{Op: op, Path: strings.TrimSuffix(label+"/"+key, "/"), Hint: hint,
			Err: fmt.Errorf("%s: %w", e.what, err), Kind: cmp.Or(e.kind, ErrSetup)}
	}
	return err
}

// explanations are the errors of servers that people can do something about. The first that fits counts.
var explanations = []struct {
	codes []string
	is    func(error) bool // nil: codes alone tell
	what  string
	hint  string
	kind  error // nil: ErrSetup
}{
	{codes: []string{minio.NoSuchBucket}, what: "there is no such bucket",
		hint: "make the bucket, or correct url, endpoint and region in ROOTS"},
	{codes: []string{"AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "InvalidRegion",
		"IllegalLocationConstraintException"},
		is: hasStatus(http.StatusMovedPermanently), what: "the bucket is in another region",
		hint: "set the bucket's region in ROOTS"},
	{codes: []string{"RequestTimeTooSkewed"}, what: "the clocks of this machine and the server differ",
		hint: "set this machine's clock, as by chrony or systemd-timesyncd"},
	{is: isPlain, what: "the endpoint says https, the server speaks http",
		hint: "write the endpoint in ROOTS with http://, or have the server speak https"},
	{is: wantsTLS, what: "the endpoint says http, the server speaks https",
		hint: "write the endpoint in ROOTS with https://"},
	{codes: []string{"InvalidAccessKeyId", "SignatureDoesNotMatch", "InvalidToken", expiredToken, badRequest},
		what: "the server rejects the credentials",
		hint: "check the credentials: AWS_ACCESS_KEY_ID and related variables, or the credentials file; and whether " +
			"an endpoint with http:// should have https://"},
	{is: isFullBucket, what: "the store is full", // some say so with status 403
		hint: "make room there; the task continues when it is retried", kind: fault.ErrTryAgain},
	{is: hasStatus(http.StatusForbidden), what: "access is denied",
		hint: "allow these credentials what docs/farm-tasks.md lists under Buckets"},
	{is: isUntrusted, what: "the server cannot be trusted",
		hint: `name the file of the certificate that signed the server's by ca = "..." in ROOTS`},
	{is: isAway, what: "the server is unreachable or busy", kind: fault.ErrTryAgain,
		hint: "check whether the server is up, and check the endpoint in ROOTS"},
}
