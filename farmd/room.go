package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.uber.org/zap/zapcore"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
	"vksplat/internal/fault"
)

// roomHint is what helps where the disk is full.
const roomHint = "make room on the disk: the farm then goes on by itself"

// roomHolds is for how long a database that had no room is taken to have none: Temporal tries again more often.
const roomHolds = 10 * time.Second

// room knows whether the database has room. Temporal tells its log alone, and whoever asks for something in words that
// say nothing of it, or not at all.
type room struct{ lacked atomic.Int64 } // when it last had none, in Unix nanoseconds

// isFull says whether an error is of a disk or quota without room, by its text where Temporal passed it on.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || saysFull(err.Error())
}

// saysFull knows the words of SQLite, Postgres, and the systems.
func saysFull(text string) bool {
	for _, words := range []string{"disk is full", "o space left on device", "isk quota exceeded",
		"not enough space on the disk"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// is says that there is no room.
func (r *room) is() bool { return time.Since(time.Unix(0, r.lacked.Load())) < roomHolds }

// note takes in that there was none, and says so to whoever looks after the server, once.
func (r *room) note() {
	if before := r.is(); r.lacked.Swap(time.Now().UnixNano()) == 0 || !before {
		fmt.Fprintf(os.Stderr, "vksplat-farmd: the database has no room\n  %s\n", roomHint)
	}
}

// errNoRoom is for people, who would else wait for a server that does not seem to respond.
var errNoRoom = serviceerror.NewFailedPrecondition(flow.NoRoom)

// explain makes errNoRoom of an error that comes of a full disk. Workers keep theirs, after which they try again.
func (r *room) explain(ctx context.Context, who pass.Who, err error) error {
	full := isFull(err) // by its words, as Temporal has several kinds for it
	if full {
		r.note()
	}
	var away *serviceerror.Unavailable
	full = full || r.is() && errors.As(err, &away) || context.Cause(ctx) == errNoRoom
	if full && who.Role != pass.Worker {
		return errNoRoom
	}
	return err
}

// roomPatience is for how long a request may go on that wants something kept while there is no room. Temporal itself
// would try until the client gives up.
const roomPatience = 2 * time.Second

// bound ends a request, with errNoRoom as the cause, that takes long while there is no room.
func (r *room) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go every(ctx, roomPatience, func() {
		if r.is() {
			cancel(errNoRoom)
		}
	})
	return ctx, func() { cancel(nil) }
}

// keeps says whether a method has the database keep something.
func keeps(method string) bool {
	_, name, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	for _, reads := range []string{"Get", "List", "Describe", "Count", "Query", "Poll"} {
		if strings.HasPrefix(name, reads) {
			return false
		}
	}
	return true
}

// refusedLine is what Temporal writes of each call that the gate refuses for now. Callers choose how many these are.
const refusedLine = "Authorization error"

// watched is the log of Temporal's server, in which room finds what it knows. While there is none, all that goes wrong
// comes of it, and is not written.
type watched struct {
	zapcore.Core
	room *room
}

// Enabled implements zapcore.Core: errors are looked at, also where they are not written.
func (w watched) Enabled(level zapcore.Level) bool {
	return level >= zapcore.ErrorLevel || w.Core.Enabled(level)
}

func (w watched) With(fields []zapcore.Field) zapcore.Core {
	return watched{w.Core.With(fields), w.room}
}

func (w watched) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if w.Enabled(e.Level) {
		return to.AddCore(e, w)
	}
	return to
}

func (w watched) Write(e zapcore.Entry, fields []zapcore.Field) error {
	for i := range fields {
		f := &fields[i]
		if err, is := f.Interface.(error); is && isFull(err) || saysFull(f.String) {
			w.room.note()
		}
	}
	if !w.Core.Enabled(e.Level) || e.Level < zapcore.FatalLevel && (w.room.is() || e.Message == refusedLine) {
		return nil
	}
	return w.Core.Write(e, fields)
}

// keepError is an error of files of the farm that cannot be written.
func keepError(op, path string, err error) error {
	e := &fault.Error{Op: op, Path: path, Err: fault.Pathless(err), Kind: fault.ErrTryAgain}
	if isFull(err) {
		e.Hint = roomHint
	}
	return e
}
