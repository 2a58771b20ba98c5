package store

import (
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

// isTaken reports a failed condition of a write.
func isTaken(err error) bool {
	a, is := answer(err)
	return is && a.StatusCode == http.StatusPreconditionFailed
}

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
func wantsTLS(a minio.ErrorResponse) bool {
	return a.StatusCode == http.StatusBadRequest && strings.Contains(strings.ToLower(a.Message), "http request") &&
		strings.Contains(strings.ToLower(a.Message), "https")
}

// isFullBucket reports a full server or quota.
func isFullBucket(a minio.ErrorResponse) bool {
	return a.StatusCode == http.StatusInsufficientStorage ||
		slices.Contains([]string{"XMinioStorageFull", "QuotaExceeded", "XMinioAdminBucketQuotaExceeded"}, a.Code)
}

// explain adds a cause and a hint to a server's error. Other errors stay as they are.
func (b *bucket) explain(op, key string, err error) error {
	var known *fault.Error
	var place *fs.PathError
	if err == nil || errors.As(err, &known) || errors.As(err, &place) || errors.Is(err, ErrExists) {
		return err
	}
	if isMissing(err) || errors.Is(err, fs.ErrNotExist) {
		return &fs.PathError{Op: op, Path: key, Err: fs.ErrNotExist}
	}
	where := b.label
	if key != "" {
		where += "/" + key
	}
	a, _ := answer(err)
	said := func(kind error, hint, format string, args ...any) error {
		return &fault.Error{Op: op, Path: where, Err: fmt.Errorf(format, append(args, err)...), Hint: hint, Kind: kind}
	}
	switch {
	case a.Code == minio.NoSuchBucket:
		return said(ErrSetup, "make the bucket, or correct url, endpoint and region in the file of "+
			fault.Setting("roots"), "there is no bucket %s: %w", b.name)
	case slices.Contains([]string{"AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect",
		"InvalidRegion", "IllegalLocationConstraintException"}, a.Code), a.StatusCode == http.StatusMovedPermanently:
		hint := "set the bucket's region in the file of " + fault.Setting("roots")
		if a.Region != "" {
			hint = fmt.Sprintf("set region = %q in the file of %s", a.Region, fault.Setting("roots"))
		}
		return said(ErrSetup, hint, "the bucket is in another region: %w")
	case a.Code == "RequestTimeTooSkewed":
		return said(ErrSetup, "set this machine's clock, as by chrony or systemd-timesyncd",
			"the clocks of this machine and the server differ: %w")
	case isPlain(err):
		return said(ErrSetup, "write the endpoint in the file of "+fault.Setting("roots")+
			" with http://, or have the server speak https", "the endpoint says https, the server speaks http: %w")
	case wantsTLS(a):
		return said(ErrSetup, "write the endpoint in the file of "+fault.Setting("roots")+" with https://",
			"the endpoint says http, the server speaks https: %w")
	case a.Code == badRequest && strings.HasPrefix(b.label, "http://"):
		return said(ErrSetup, "check whether the server speaks https, and check the credentials",
			"the server rejects the request: %w")
	case a.Code == "InvalidAccessKeyId", a.Code == "SignatureDoesNotMatch", a.Code == "InvalidToken",
		a.Code == expiredToken, a.Code == badRequest:
		return said(ErrSetup, "check the credentials: AWS_ACCESS_KEY_ID and related variables, or the credentials file",
			"the server rejects the credentials: %w")
	case a.StatusCode == http.StatusForbidden:
		return said(ErrSetup, "allow these credentials what docs/farm-tasks.md lists under Buckets",
			"access is denied: %w")
	case isFullBucket(a):
		return said(fault.ErrTryAgain, "make room there; the task goes on when it is tried again",
			"the store is full: %w")
	case isUntrusted(err):
		return said(ErrSetup, "name the file of the certificate that signed the server's by ca = \"...\" in the "+
			"file of "+fault.Setting("roots"), "the server cannot be trusted: %w")
	case isAway(err):
		return said(fault.ErrTryAgain, "check whether the server is up, and check the endpoint in the file of "+
			fault.Setting("roots"), "the server is unreachable or busy: %w")
	}
	return err
}
