package wire

import (
	"context"
	"errors"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
)

// Code is gRPC's code of an error.
type Code int

// The codes that are used here.
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

// detailsOf are the types of details that are read.
const detailsOf = "temporal.api.errordetails.v1."

// errorOf is the error of a call, as the server or the way to it says.
func errorOf(ctx context.Context, err error) error {
	var said *connect.Error
	if !errors.As(err, &said) {
		return &Error{Code: Unavailable, Text: err.Error()}
	}
	until, is := ctx.Deadline()
	byServer := is && time.Until(until) < nearly && said.Code() == connect.CodeCanceled
	if CodeOf(ctx.Err()) == Slow || byServer {
		return &Error{Code: Slow, Text: "no response in time"}
	}
	e := &Error{Code: Code(said.Code()), Text: said.Message()}
	switch said.Code() {
	case connect.CodeUnauthenticated: // a proxy's
		e.Code = Denied
	case connect.CodeCanceled, connect.CodeUnknown, connect.CodeInternal:
		if ctx.Err() == nil && !connect.IsWireError(said) { // it is of the way, or no server of Temporal is there
			e.Code = Unavailable
		}
	}
	for _, d := range said.Details() {
		switch strings.TrimPrefix(d.Type(), detailsOf) {
		case "NamespaceNotFoundFailure":
			e.NoNamespace = true
		case "PermissionDeniedFailure":
			var denied Denial
			if proto.Unmarshal(d.Bytes(), &denied) == nil {
				e.Reason = denied.Reason
			}
		}
	}
	return e
}
