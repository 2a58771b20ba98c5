package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/scene"
)

// Why a worker must end, as the cause of its Context.
var (
	ErrNameTaken = errors.New("another worker of the farm has this name")
	ErrRefused   = errors.New("the server does not let this worker in any more")
)

// errTurnedAway is why a server that is there cannot be asked.
var errTurnedAway = errors.New("the farm's server refuses the token, as one that has expired or was revoked")

const (
	seatPatience  = nodeBeat * 3 / 2 // a node whose record nobody writes for so long has died
	seatLook      = nodeBeat / 20
	refusedLeases = 4 // how long a server may refuse a worker, as while its disk is away
	refusedFresh  = 10 * time.Second
)

// sit makes the node's record this worker's: it takes that of a worker that left, of one whose folder this worker has now, or of one that is silent. Two that live
// would share orders, quarantine and the count of failures.
func (w *Worker) sit(ctx context.Context) error {
	w.claim = rand.Text()
	for v := (vacancy{home: w.info.Home}); ; {
		r, err := w.q.nodes.read(ctx, tokenOf(w.info.Node))
		if errors.Is(err, errAbsent) {
			r, err = record{}, nil
		}
		if err != nil {
			return err
		}
		free, err := v.look(r)
		if err != nil {
			return err
		}
		if free {
			w.revision = r.revision
			if err := w.write(ctx); !errors.Is(err, errConflict) {
				return err
			}
		}
		if err := wait(ctx, nil, seatLook); err != nil {
			return err
		}
	}
}

// vacancy is what a worker that wants a name has seen of its record.
type vacancy struct {
	home  string
	looks int
	seen  uint64 // the newest revision
}

// look says whether the record may be taken. A new revision is that of another worker, which lives, also where this one tried to take the record and came too late.
// Looks are counted, seatLook apart: while a server is away, nobody can write.
func (v *vacancy) look(r record) (free bool, err error) {
	var before NodeRecord
	_ = json.Unmarshal(r.value, &before) // what cannot be read belongs to whoever keeps writing it
	free = len(r.value) == 0 || v.home != "" && before.Home == v.home
	if !free && v.looks > 0 && r.revision > v.seen {
		return false, ErrNameTaken
	}
	v.seen = max(v.seen, r.revision)
	v.looks++
	return free || v.looks > int(seatPatience/seatLook), nil
}

// joinError is why a worker could not join.
func joinError(node string, err error) error {
	hint, kind := "", scene.ErrTryAgain
	switch {
	case errors.Is(err, ErrNameTaken):
		hint = "Give each worker a name of its own with --name; farm nodes lists those that are there."
	case errors.Is(err, nats.ErrPermissionViolation):
		err = errors.New("the token is none of a worker")
		hint, kind = "Make one on the machine that serves: vksplat farm token --role worker --name "+node+" -o "+node+".token", scene.ErrUsage
	}
	return failure("join farm", node, err, hint, kind)
}

// beat writes the node's record, unless another worker has taken it: then this one must end. A record that has expired is written anew.
func (w *Worker) beat(ctx context.Context) error {
	for {
		err := w.write(ctx)
		if !errors.Is(err, errConflict) {
			return err
		}
		r, err := w.q.nodes.read(ctx, tokenOf(w.info.Node))
		var now NodeRecord
		switch {
		case errors.Is(err, errAbsent):
			w.revision = 0
		case err != nil:
			return err
		case r.revision <= w.revision: // a replica that is behind
		case json.Unmarshal(r.value, &now) == nil && now.Claim == w.claim:
			w.revision = r.revision
		default:
			w.lose(joinError(w.info.Node, ErrNameTaken))
			return ErrNameTaken
		}
		if err := wait(ctx, nil, firstWait); err != nil {
			return err
		}
	}
}

// write writes the record at the revision that this worker wrote last.
func (w *Worker) write(ctx context.Context) error {
	w.lock.Lock()
	record := NodeRecord{Format: Format, Node: w.info.Node, Home: w.info.Home, Claim: w.claim, Pools: w.info.Pools, Devices: w.info.Devices, Roots: w.info.Roots,
		Lacks: w.info.Lacks, Version: w.q.options.Version}
	for _, lease := range w.leases {
		record.Tasks = append(record.Tasks, lease.Job+"/"+lease.Task.Name)
	}
	w.lock.Unlock()
	slices.Sort(record.Tasks)
	if w.info.Away != nil {
		record.Lacks = append(slices.Clone(record.Lacks), w.info.Away()...)
	}
	if w.info.DiskFree != nil {
		record.DiskFree = w.info.DiskFree()
	}
	if w.info.Use != nil {
		record.Use = w.info.Use()
	}
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	revision, err := w.q.nodes.cas(ctx, tokenOf(w.info.Node), w.revision, raw)
	if err == nil {
		w.revision = revision
	}
	return err
}

// stand leaves the record empty for whoever takes the name next. Else it expires.
func (w *Worker) stand() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = w.q.nodes.cas(ctx, tokenOf(w.info.Node), w.revision, nil)
}

// Context ends when the worker must end, and says why: ErrNameTaken or ErrRefused.
func (w *Worker) Context() context.Context { return w.fate }

// hearAuth notes that the server refused the connection, if that is what the error says, and logs the first of many.
func (q *Queue) hearAuth(err error) bool {
	for _, refusal := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, refusal) {
			now := time.Now()
			if before := q.turnedAway.Swap(&now); before == nil || now.Sub(*before) > refusedFresh {
				q.log.Warn(errTurnedAway.Error()+"; it is asked again", "cause", err)
			}
			return true
		}
	}
	return false
}

// guard ends the worker when the server keeps refusing it. A server that is away is waited for.
func (w *Worker) guard(ctx context.Context) {
	lease := time.Duration(w.q.farm.Lease)
	limit, look := refusedLeases*lease, min(lease, refusedFresh)/4
	var since time.Time
	for wait(ctx, nil, look) == nil {
		last := w.q.turnedAway.Load()
		switch {
		case w.q.nc.IsConnected() || last == nil || time.Since(*last) > refusedFresh:
			since = time.Time{}
		case since.IsZero():
			since = *last
		case time.Since(since) >= limit:
			w.lose(failure("stay in farm", w.info.Node, ErrRefused, "Its token has expired or was revoked: make another with vksplat farm token --role worker.", scene.ErrTryAgain))
			return
		}
	}
}
