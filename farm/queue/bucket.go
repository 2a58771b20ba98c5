package queue

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

var (
	errAbsent   = errors.New("no such key")
	errConflict = errors.New("somebody else wrote first")
)

const (
	tryFor    = 4 * time.Second // one try of a request
	firstWait = 20 * time.Millisecond
	lastWait  = time.Second
	scanBatch = 2000
)

// record is a value of a bucket.
type record struct {
	key      string
	value    []byte
	revision uint64
	at       time.Time // the server's clock
}

// bucket is a KV bucket: the newest value of each key, with the sequence number of its write as its revision. Stream LOGS is read as one, too, that keeps
// all values.
type bucket struct {
	q      *Queue
	stream string
	prefix string // of subjects, in front of the key
}

func kvBucket(q *Queue, name string) bucket { return bucket{q, "KV_" + name, "$KV." + name + "."} }

func (b bucket) subject(key string) string { return b.prefix + key }

// get reads a key, or gives errAbsent. A replica may answer that is a little behind; compare-and-set finds out.
func (b bucket) get(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	r, err := b.read(ctx, key)
	return r.value, r.revision, err
}

func (b bucket) read(ctx context.Context, key string) (r record, err error) {
	err = b.q.retry(ctx, "read "+b.subject(key), func(ctx context.Context) error {
		msg, err := b.q.nc.RequestWithContext(ctx, "$JS.API.DIRECT.GET."+b.stream+"."+b.subject(key), nil)
		if err != nil {
			return err
		}
		switch msg.Header.Get("Status") {
		case "404":
			return errAbsent
		case "":
		default:
			return fmt.Errorf("the server answers %s %s", msg.Header.Get("Status"), msg.Header.Get("Description"))
		}
		r, err = b.recordOf(msg)
		return err
	})
	return r, err
}

func (b bucket) recordOf(msg *nats.Msg) (record, error) {
	revision, err := strconv.ParseUint(msg.Header.Get(jetstream.SequenceHeader), 10, 64)
	if err != nil {
		return record{}, err
	}
	at, err := time.Parse(time.RFC3339Nano, msg.Header.Get(jetstream.TimeStampHeaer))
	return record{key: strings.TrimPrefix(msg.Header.Get(jetstream.SubjectHeader), b.prefix), value: msg.Data, revision: revision, at: at}, err
}

// cas writes value where the key is at the revision, 0 for absent, or gives errConflict. A try whose answer got lost is recognised by its value, which
// must differ from what others write.
func (b bucket) cas(ctx context.Context, key string, revision uint64, value []byte) (uint64, error) {
	var written uint64
	unsure := false
	err := b.q.retry(ctx, "write "+b.subject(key), func(ctx context.Context) error {
		ack, err := b.q.js.Publish(ctx, b.subject(key), value, jetstream.WithExpectLastSequencePerSubject(revision), jetstream.WithRetryAttempts(0))
		if err == nil {
			written = ack.Sequence
			return nil
		}
		if !isConflict(err) {
			unsure = true
			return err
		}
		if !unsure {
			return errConflict
		}
		found, revision, err := b.get(ctx, key)
		if errors.Is(err, errAbsent) {
			return errConflict // it has expired since, as the record of a node that was halted
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(found, value) {
			return errConflict
		}
		written = revision
		return nil
	})
	return written, err
}

func isConflict(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence || api.ErrorCode == 10164)
}

// scan calls fn for the newest value of each key that matches the filter and was written at revision from or later, in the order of writing, and returns
// the revision to go on from.
func (b bucket) scan(ctx context.Context, filter string, from uint64, fn func(record)) (next uint64, err error) {
	next = max(from, 1)
	for {
		more := false
		err := b.q.retry(ctx, "read "+b.subject(filter), func(ctx context.Context) error {
			var err error
			next, more, err = b.scanBatch(ctx, filter, next, fn)
			return err
		})
		if err != nil || !more {
			return next, err
		}
	}
}

// scanBatch reads up to scanBatch values. What it read before an error counts.
func (b bucket) scanBatch(ctx context.Context, filter string, from uint64, fn func(record)) (next uint64, more bool, err error) {
	next = from
	inbox := b.q.nc.NewInbox()
	sub, err := b.q.nc.SubscribeSync(inbox)
	if err != nil {
		return next, false, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	request, err := json.Marshal(map[string]any{"seq": from, "next_by_subj": b.subject(filter), "batch": scanBatch})
	if err != nil {
		return next, false, err
	}
	if err := b.q.nc.PublishRequest("$JS.API.DIRECT.GET."+b.stream, inbox, request); err != nil {
		return next, false, err
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return next, false, err
		}
		switch status := msg.Header.Get("Status"); status {
		case "":
		case "404":
			return next, false, nil
		case "204": // the end of the batch
			return next, msg.Header.Get("Nats-Num-Pending") != "0", nil
		case "503":
			return next, false, nats.ErrNoResponders
		default:
			return next, false, fmt.Errorf("the server answers %s %s", status, msg.Header.Get("Description"))
		}
		r, err := b.recordOf(msg)
		if err != nil {
			return next, false, err
		}
		if r.revision < next {
			return next, false, fmt.Errorf("the server answers message %d where %d was asked for", r.revision, next)
		}
		fn(r)
		next = r.revision + 1
	}
}

// retry calls fn until it succeeds, fails for good, or the context ends: a server that restarts is waited for.
func (q *Queue) retry(ctx context.Context, what string, fn func(context.Context) error) error {
	if q.options.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, q.options.Patience)
		defer cancel()
	}
	wait := firstWait
	for {
		err := q.try(ctx, fn)
		if err == nil || !isTransient(err) {
			return err
		}
		err = q.asked(ctx, err)
		if q.options.Patience > 0 && errors.Is(err, ErrTrouble) {
			return err // somebody waits
		}
		level := slog.LevelDebug
		if wait < lastWait && 2*wait >= lastWait { // once, when it takes long
			level = slog.LevelWarn
		}
		q.log.Log(ctx, level, "try again", "what", what, "cause", &unanswered{what, context.DeadlineExceeded, err})
		select {
		case <-ctx.Done():
			return &unanswered{what, context.Cause(ctx), err}
		case <-time.After(wait):
		}
		wait = min(2*wait, lastWait)
	}
}

// try calls fn once. It ends early when the connection is lost: no answer can come any more. Nor does one come to what the server refuses; where a call is
// strict, it has the connection for itself, and the refusal is of what it asks.
func (q *Queue) try(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, tryFor, nats.ErrTimeout)
	defer cancel()
	ctx, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	lost := q.nc.StatusChanged(nats.RECONNECTING, nats.CLOSED)
	defer q.nc.RemoveStatusListener(lost)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-lost:
			lose(nats.ErrDisconnected)
		case refusal := <-q.refused:
			lose(failure("ask farm", "", refusal, "The token's role may not do this: the administrator makes another with vksplat farm token.", scene.ErrUsage))
		case <-done:
		}
	}()
	err := fn(ctx)
	if cause := context.Cause(ctx); err != nil && (errors.Is(cause, nats.ErrDisconnected) || errors.Is(cause, nats.ErrPermissionViolation)) {
		return cause
	}
	return err
}

// isTransient says whether the same request may succeed later.
func isTransient(err error) bool {
	for _, kind := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrDisconnected, nats.ErrConnectionReconnecting, nats.ErrReconnectBufExceeded,
		nats.ErrNoServers, nats.ErrStaleConnection, nats.ErrFetchDisconnected, jetstream.ErrNoStreamResponse, jetstream.ErrJetStreamNotEnabled, jetstream.ErrConsumerLeadershipChanged, jetstream.ErrServerShutdown,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	var api *jetstream.APIError
	return errors.As(err, &api) && (api.Code == 503 || strings.Contains(api.Description, "no space left") || strings.Contains(api.Description, "quota exceeded"))
}

// put writes a value whatever was there.
func (b bucket) put(ctx context.Context, key string, value []byte) error {
	return b.q.retry(ctx, "write "+b.subject(key), func(ctx context.Context) error {
		_, err := b.q.js.Publish(ctx, b.subject(key), value, jetstream.WithRetryAttempts(0))
		return err
	})
}
