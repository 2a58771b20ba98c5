package wire

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Code is gRPC's code of an error.
type Code int

// Codes that somebody here asks for.
const (
	OK                Code = 0
	Canceled          Code = 1
	Unknown           Code = 2
	InvalidArgument   Code = 3
	Slow              Code = 4 // not answered in time
	NotFound          Code = 5
	Exists            Code = 6
	Denied            Code = 7
	ResourceExhausted Code = 8
	Aborted           Code = 10
	Unimplemented     Code = 12
	Internal          Code = 13
	Unavailable       Code = 14
)

// Error is a server's answer that a call has failed, or of the way to it.
type Error struct {
	Code   Code
	Text   string
	Reason string // of what was denied: the gate's words
	// NoNamespace says that what was not found is the namespace.
	NoNamespace bool
}

func (e *Error) Error() string { return e.Text }

// CodeOf is the code of an error; of nil it is OK.
func CodeOf(err error) Code {
	var own *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &own):
		return own.Code
	case errors.Is(err, context.DeadlineExceeded):
		return Slow
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Unknown
}

// IsAway says that an error is of the way to the server, or of a server that cannot answer now: the call may succeed
// later.
func IsAway(err error) bool {
	switch CodeOf(err) {
	case Unavailable, Slow, Canceled, ResourceExhausted, Aborted, Internal, Unknown:
		return true
	}
	return false
}

// nearly is how much earlier than ours a server's clock may say that the time of a call is over.
const nearly = 200 * time.Millisecond

// lost is the error of a call that got no answer.
func lost(ctx context.Context, err error) *Error {
	until, is := ctx.Deadline()
	byServer := is && time.Until(until) < nearly && strings.Contains(err.Error(), "; CANCEL; received from peer")
	switch ended := CodeOf(ctx.Err()); {
	case ended == Slow, byServer:
		return &Error{Code: Slow, Text: "nothing came in time"}
	case ended != OK:
		return &Error{Code: ended, Text: err.Error()}
	}
	return &Error{Code: Unavailable, Text: err.Error()}
}

// status is what gRPC's trailer status-details holds.
type status struct {
	Details []*struct {
		Type  string `pb:"1"`
		Value []byte `pb:"2"`
	} `pb:"3"`
}

// detailsOf are the types of details that are read.
const detailsOf = "type.googleapis.com/temporal.api.errordetails.v1."

// errorOf is the error that a trailer tells of; nil where it tells of none.
func errorOf(trailer http.Header) error {
	code, err := strconv.Atoi(trailer.Get("Grpc-Status"))
	if err != nil {
		return &Error{Code: Internal, Text: "the answer has no status: no server of Temporal is there"}
	}
	if code == int(OK) {
		return nil
	}
	e := &Error{Code: Code(code), Text: trailer.Get("Grpc-Message")}
	if text, err := url.PathUnescape(e.Text); err == nil {
		e.Text = text
	}
	var s status
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(trailer.Get("Grpc-Status-Details-Bin"), "="))
	if err != nil || decode(data, reflect.ValueOf(&s).Elem(), 0) != nil {
		return e
	}
	for _, d := range s.Details {
		switch strings.TrimPrefix(d.Type, detailsOf) {
		case "NamespaceNotFoundFailure":
			e.NoNamespace = true
		case "PermissionDeniedFailure":
			var denied struct {
				Reason string `pb:"1"`
			}
			if decode(d.Value, reflect.ValueOf(&denied).Elem(), 0) == nil {
				e.Reason = denied.Reason
			}
		}
	}
	return e
}

// codeOfHTTP is the code of an answer that is not gRPC's: a proxy's, or of another server.
func codeOfHTTP(status int) Code {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Denied
	case http.StatusNotFound:
		return Unimplemented
	}
	return Unavailable
}
