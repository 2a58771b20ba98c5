package client

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"
	sdk "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"vksplat/farm/flow"
	"vksplat/internal/fault"
)

// Options say which farm, and who asks.
type Options struct {
	Address   string // HOST:PORT of Temporal's frontend
	Namespace string
	Owner     string // whose jobs are meant where nobody is named
	TLS       *tls.Config
}

// Farm is a connection to a farm.
type Farm struct {
	Options
	SDK sdk.Client
}

// Dial connects. It tries for some seconds: a server that is started again is back within one.
func Dial(ctx context.Context, o Options) (*Farm, error) {
	ctx, cancel := context.WithTimeout(ctx, dialFor)
	defer cancel()
	for {
		c, err := sdk.DialContext(ctx, sdk.Options{HostPort: o.Address, Namespace: o.Namespace,
			ConnectionOptions: sdk.ConnectionOptions{TLS: o.TLS},
			// It is not what users of this program know: errors that matter are returned.
			Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
		if err == nil {
			return &Farm{o, c}, nil
		}
		select {
		case <-ctx.Done():
			return nil, explain("connect to farm", o.Address, err)
		case <-time.After(500 * time.Millisecond):
		}
		if refused := new(serviceerror.PermissionDenied); errors.As(err, &refused) || flow.NeedsPass(err) {
			return nil, explain("connect to farm", o.Address, err)
		}
	}
}

const dialFor = 10 * time.Second

// Close ends the connection.
func (f *Farm) Close() { f.SDK.Close() }

// JobID is the workflow id of a job by what a user calls it: a name, or OWNER/NAME.
func (f *Farm) JobID(name string) string {
	if owner, job, others := strings.Cut(name, "/"); others {
		return flow.JobID(owner, job)
	}
	return flow.JobID(f.Owner, name)
}

// explain adds to an error of the server what can be done about it.
func explain(op, what string, err error) error {
	var (
		denied  *serviceerror.PermissionDenied
		missing *serviceerror.NotFound
		place   *serviceerror.NamespaceNotFound
		away    *serviceerror.Unavailable
		full    *serviceerror.FailedPrecondition
		known   *fault.Error
	)
	e := &fault.Error{Op: op, Path: what, Err: err}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case errors.As(err, &denied):
		if denied.Reason != "" {
			e.Err = errors.New(denied.Reason)
		}
		e.Kind, e.Hint = fault.ErrSetup,
			"the pass of this machine does not allow that, or was revoked: whoever runs the farm "+
				"makes a token for another one"
	case errors.As(err, &full) && full.Message == flow.NoRoom:
		e.Kind, e.Err, e.Hint = fault.ErrTryAgain, errors.New(flow.NoRoom),
			"whoever runs the farm makes room; then try again: what the farm has accepted goes on by itself"
	case errors.As(err, &place):
		e.Kind, e.Hint = fault.ErrSetup, "name a namespace that the cluster has, with "+fault.Setting("namespace")
	case errors.As(err, &missing):
		e.Kind, e.Err = fault.ErrUsage, errors.New("the farm knows no such job")
		e.Hint = fault.Command("farm list") + " lists those that it knows; jobs of others are called OWNER/JOB"
	case flow.NeedsPass(err):
		e.Kind, e.Err = fault.ErrSetup, errors.New(flow.Away(err))
		e.Hint = "join it again, with a new token: " + fault.Command("farm join TOKEN --overwrite") + "; of a " +
			"cluster without passes name its authority with " + fault.Setting("tls-ca")
	case errors.As(err, &away), isSlow(err):
		e.Kind, e.Hint = fault.ErrTryAgain, "is the farm's server running, and does the network reach it?"
		e.Err = errors.New("it does not answer: " + flow.Away(err))
	default:
		e.Kind, e.Hint = fault.ErrTryAgain, "look at what the farm's server says"
	}
	return e
}
