package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

// Errors for errors.Is.
var (
	ErrNoFarm   = errors.New("there is no farm on this server")
	ErrFormat   = errors.New("the farm is of another format")
	ErrNoJob    = errors.New("there is no such job")
	ErrNoTask   = errors.New("there is no such task")
	ErrExists   = errors.New("there is another job of this name")
	ErrNotEnded = errors.New("the job has not ended")
	ErrNothing  = errors.New("nothing was done")
	ErrRunning  = errors.New("it is running")

	ErrForgotten = errors.New("the job is being forgotten")
)

// Farm holds what all programs of a farm must agree on. It is stored when the farm is set up.
type Farm struct {
	Format   int      `json:"format"`
	Lease    Duration `json:"lease"`    // an owner silent for longer loses its task; 0 means 30 s
	Replicas int      `json:"replicas"` // servers that keep each message; 0 means 1
	Window   int      `json:"window"`   // tasks in stream JOBS for each priority and pool; 0 means 256
}

// Options say who connects.
type Options struct {
	Version string       // of this program, for heads and entries
	Log     *slog.Logger // every change of a state, and what was retried; nil for none
	// Patience bounds how long one call waits for a server that does not answer; 0 means that only its context does.
	Patience time.Duration
}

// Queue is a connection to a farm. Its methods may be called from any goroutine. Each waits for a server that is away until its context ends.
type Queue struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	options Options
	log     *slog.Logger
	farm    Farm
	jobs    bucket
	tasks   bucket
	nodes   bucket
	ctl     bucket
	lead    bucket
	logs    bucket

	previews bucket
	clock    clock
	well     well

	refused    chan error                // what the server does not permit the connection, where strict
	strict     atomic.Bool               // a refusal ends a call, whose connection nobody else uses
	turnedAway atomic.Pointer[time.Time] // when the server last refused the connection, with a monotonic reading; nil for never
}

const (
	jobStream = "JOBS"
	logStream = "LOGS"
	farmKey   = "farm"
)

// Setup makes the streams and buckets of a farm on the server, or finds them made. Farm's values count the first time only, but for Replicas.
func Setup(ctx context.Context, nc *nats.Conn, farm Farm, options Options) error {
	q, err := attach(nc, options)
	if err != nil {
		return err
	}
	farm = farm.withDefaults()
	if err := q.makeStreams(ctx, farm.Replicas); err != nil {
		return failure("set up farm", "", err, roomHint(err, farm.Replicas), scene.ErrTryAgain)
	}
	raw, err := json.Marshal(farm)
	if err != nil {
		return err
	}
	if _, err := q.ctl.cas(ctx, farmKey, 0, raw); err != nil && !errors.Is(err, errConflict) {
		return failure("set up farm", "", err, "", scene.ErrTryAgain)
	}
	return q.readFarm(ctx)
}

func roomHint(err error, replicas int) string {
	var api *jetstream.APIError
	if errors.As(err, &api) && (api.ErrorCode == noPlace || api.ErrorCode == noRoom) {
		return fmt.Sprintf("The streams need %d servers with JetStream that may store more than %.1f GiB each.", replicas, float64(logBytes+previewsBytes)/(1<<30))
	}
	return ""
}

// Error codes of JetStream: no servers for a stream, no storage on the only one.
const (
	noPlace = 10005
	noRoom  = 10047
)

// Connect gives the farm that Setup made on the server.
func Connect(ctx context.Context, nc *nats.Conn, options Options) (*Queue, error) {
	q, err := attach(nc, options)
	if err != nil {
		return nil, err
	}
	return q, q.readFarm(ctx)
}

// Farm returns the values of Setup.
func (q *Queue) Farm() Farm { return q.farm }

func attach(nc *nats.Conn, options Options) (*Queue, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, failure("connect to farm", "", err, "", nil)
	}
	q := &Queue{nc: nc, js: js, options: options, log: options.Log}
	if q.log == nil {
		q.log = slog.New(slog.DiscardHandler)
	}
	for name, b := range map[string]*bucket{"job": &q.jobs, "task": &q.tasks, "node": &q.nodes, "ctl": &q.ctl, "lead": &q.lead, "preview": &q.previews} {
		*b = kvBucket(q, name)
	}
	q.logs = bucket{q, logStream, "log."}
	q.strict.Store(options.Patience > 0)
	q.hearRefusals()
	return q, nil
}

// hearRefusals takes in what the server says outside of answers.
func (q *Queue) hearRefusals() {
	q.refused = make(chan error, 1)
	q.nc.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if q.hearAuth(err) {
			return
		}
		if errors.Is(err, nats.ErrPermissionViolation) && q.strict.Load() {
			select {
			case q.refused <- err:
			default: // one is enough to end with
			}
			return
		}
		q.log.Warn("the connection", "cause", err)
	})
}

func (f Farm) withDefaults() Farm {
	f.Format = Format
	if f.Lease <= 0 {
		f.Lease = Duration(30 * time.Second)
	}
	if f.Replicas <= 0 {
		f.Replicas = 1
	}
	if f.Window <= 0 {
		f.Window = 256
	}
	return f
}

func (q *Queue) readFarm(ctx context.Context) error {
	const op = "connect to farm"
	raw, _, err := q.ctl.get(ctx, farmKey)
	if errors.Is(err, errAbsent) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return failure(op, "", ErrNoFarm, "Start one there with vksplat farm serve.", nil)
	}
	if err != nil {
		return failure(op, "", err, "", scene.ErrTryAgain)
	}
	if err := json.Unmarshal(raw, &q.farm); err != nil {
		return failure(op, "", err, "", nil)
	}
	if q.farm.Format != Format {
		return failure(op, "", fmt.Errorf("%w: %d, this program knows %d", ErrFormat, q.farm.Format, Format), "Use the same version of vksplat on all machines of a farm.", nil)
	}
	return nil
}

// failure is an error of this package that a user can act on.
func failure(op, path string, err error, hint string, kind error) error {
	switch {
	case errors.Is(err, ErrTrouble):
		hint, kind = "Make room on the disk of the machine that serves: the farm then goes on by itself.", scene.ErrTryAgain
	case hint == "" && errors.Is(err, errTurnedAway):
		hint = "Make another with vksplat farm token on the machine that serves."
	case hint == "" && errors.As(err, new(*unanswered)):
		hint = "Is vksplat farm serve running, and the network there?"
	}
	return &scene.Error{Op: op, Path: path, Err: err, Hint: hint, Kind: kind}
}
