package client

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"

	"vksplat/farm/flow"
	"vksplat/farm/wire"
	"vksplat/internal/fault"
)

// Options say which farm, and who asks.
type Options struct {
	Address   string // HOST:PORT of Temporal's frontend
	Namespace string
	Owner     string // whose jobs are meant if no owner is named
	TLS       *tls.Config
}

// Farm is a connection to a farm.
type Farm struct {
	Options
	Conn *wire.Conn
}

// Dial connects. It tries for some seconds: a server that is started again is back within one.
func Dial(ctx context.Context, o Options) (*Farm, error) {
	conn := wire.Open(o.Address, o.Namespace, o.TLS)
	if err := conn.Call(ctx, &wire.DescribeNamespace{}, nil); err != nil {
		conn.Close()
		said := explain("connect to farm", o.Address, err)
		var e *fault.Error
		if o.TLS == nil && wire.CodeOf(err) == wire.Unavailable && errors.As(said, &e) {
			e.Hint += " A cluster with TLS needs " + fault.Setting("tls-ca") + ": a file, or the word " +
				wire.SystemRoots + "."
		}
		return nil, said
	}
	return &Farm{o, conn}, nil
}

// Close ends the connection.
func (f *Farm) Close() { f.Conn.Close() }

// JobID is the workflow id of a job by what a user calls it: a name, or OWNER/NAME.
func (f *Farm) JobID(name string) string {
	if owner, job, others := strings.Cut(name, "/"); others {
		return flow.JobID(owner, job)
	}
	return flow.JobID(f.Owner, name)
}

// explain adds to an error of the server what can be done about it.
func explain(op, what string, err error) error {
	var own *wire.Error
	var known *fault.Error
	code := wire.CodeOf(err)
	e := &fault.Error{Op: op, Path: what, Err: err}
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return err
	case code == wire.Denied:
		if errors.As(err, &own) && own.Reason != "" {
			e.Err = errors.New(own.Reason)
		}
		e.Kind, e.Hint = fault.ErrSetup,
			"this machine's pass does not allow that, or was revoked: ask the farm's administrator for a new token"
	case errors.As(err, &own) && own.Text == flow.NoRoom:
		e.Kind, e.Err, e.Hint = fault.ErrTryAgain, errors.New(flow.NoRoom),
			"the farm's administrator must make room on the server; then try again: accepted jobs continue by "+
				"themselves"
	case code == wire.InvalidArgument:
		e.Kind, e.Hint = fault.ErrUsage, "change what the command asks for"
	case errors.As(err, &own) && own.NoNamespace:
		e.Kind, e.Hint = fault.ErrSetup, "name a namespace that the cluster has, with "+fault.Setting("namespace")
	case code == wire.NotFound:
		e.Kind, e.Err = fault.ErrUsage, errors.New("no such job in the farm")
		e.Hint = fault.Command("farm list") + " lists its jobs; jobs of other owners are called OWNER/JOB"
	case flow.NeedsPass(err):
		e.Kind, e.Err = fault.ErrSetup, errors.New(flow.Away(err))
		e.Hint = "join it again, with a new token: " + fault.Command("farm join TOKEN --overwrite") + "; of a " +
			"cluster without passes name its authority with " + fault.Setting("tls-ca")
	case code == wire.Unavailable, code == wire.Slow:
		e.Kind, e.Hint = fault.ErrTryAgain, "is the farm's server running, and does the network reach it?"
		e.Err = errors.New("it does not respond: " + flow.Away(err))
		if flow.WrongClock(err) {
			e.Hint = "set the clock of this machine, or of the farm's server"
		}
	default:
		e.Kind, e.Hint = fault.ErrTryAgain, "see the messages of the farm's server"
	}
	return e
}
