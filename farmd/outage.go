package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/service/history"
	"go.temporal.io/server/service/history/consts"
	"go.temporal.io/server/service/history/queues"
	"go.temporal.io/server/service/history/replication"
	"go.temporal.io/server/service/history/tasks"
	"go.temporal.io/server/temporal"
	"go.uber.org/fx"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"vksplat/farm/flow"
)

// outages knows when this server was away last: before it started, while its machine slept, while its process was
// stopped. A worker could not be heard then, so no attempt is given up for silence until workers have had time for a
// heartbeat to the server that is back.
type outages struct {
	grace time.Duration // after an outage

	mutex sync.Mutex // guards what follows
	seen  time.Time
	ended time.Time
}

// outageFrom is the shortest time without a look at the clock that is taken for an outage.
const outageFrom = 5 * time.Second

// last is when the last outage ended, by the wall clock: the monotonic one may stand still during an outage. A clock
// that is set counts as an outage, because the times of heartbeats are by the old one.
func (o *outages) last() time.Time {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	now := time.Now().Round(0)
	if d := now.Sub(o.seen); d > outageFrom || d < 0 {
		o.ended = now
	}
	o.seen = now
	return o.ended
}

// watch looks at the clock often enough, until ctx ends.
func (o *outages) watch(ctx context.Context) {
	o.last()
	every(ctx, outageFrom/5, func() { o.last() })
}

// tell has an answer say since when the server is there: of an attempt that fell silent, a worker then knows whether
// the server was away meanwhile.
func (o *outages) tell(ctx context.Context) {
	since := strconv.FormatInt(o.last().UnixMilli(), 10)
	_ = grpc.SetHeader(ctx, metadata.Pairs(flow.SinceHeader, since)) // the answer is no worse without
}

// Wrap makes the timeouts of Temporal's activities wait for the end of the grace. It then looks again at each, which
// does nothing where a heartbeat has come.
func (o *outages) Wrap(e queues.Executor) queues.Executor { return graceful{e, o} }

type graceful struct {
	queues.Executor
	outages *outages
}

func (g graceful) Execute(ctx context.Context, what queues.Executable) queues.ExecuteResponse {
	if _, is := what.GetTask().(*tasks.ActivityTimeoutTask); is && time.Since(g.outages.last()) < g.outages.grace {
		return queues.ExecuteResponse{ExecutedAsActive: true, ExecutionErr: consts.ErrTaskRetry}
	}
	return g.Executor.Execute(ctx, what)
}

// history is Temporal's service of this name, as its own module makes it, but for the grace.
func (o *outages) history(p temporal.ServiceProviderParamsCommon) (temporal.ServicesGroupOut, error) {
	app := fx.New(p.GetCommonServiceOptions(primitives.HistoryService), history.QueueModule, history.Module,
		replication.Module, fx.Provide(func() queues.ExecutorWrapper { return o }))
	return temporal.NewService(app, primitives.HistoryService, p.Logger), app.Err()
}
