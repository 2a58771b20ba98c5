package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"vksplat/farm/flow"
	"vksplat/farm/store"
	"vksplat/farm/wire"
	"vksplat/farmd/flows"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// What the workflows of package flows are called by.
const (
	namespace = flow.Namespace
	flowQueue = flow.FlowQueue
	flowType  = flow.JobType
)

// startFlows runs workflows, with the roots that a file names, of jobs whose queues are admitted (nil: all). Behind the
// gate nobody else can: who completes workflow tasks can schedule anything for anybody.
func startFlows(c client.Client, file string, admit func(owner string, queues []string) error) (
	worker.Worker, error) {
	roots := store.Roots{} // without a file jobs end with an error that says so
	if file != "" {
		var err error
		if roots, err = store.ReadRootsFile(file); err != nil {
			return nil, err
		}
	}
	w := worker.New(c, flowQueue, worker.Options{
		// Workflows and expanding are short; documents of thousands of tasks cost a second of a core each.
		MaxConcurrentActivityExecutionSize: 4,
		DisableEagerActivities:             true,
		WorkerStopTimeout:                  10 * time.Second, // else what is planned then begins again later
	})
	flows.Register(w, &flows.Expander{Roots: roots, Heartbeat: heartbeat(), Admit: admit})
	return w, w.Start()
}

// heartbeat is how long a worker may be silent.
func heartbeat() time.Duration {
	d, _ := time.ParseDuration(os.Getenv("VKSPLAT_FARM_HEARTBEAT")) // of tests
	return cmp.Or(d, flows.DefaultHeartbeat)
}

// ownCluster is a Temporal cluster of others.
type ownCluster struct {
	address, namespace, roots string
	files                     wire.TLSFiles
}

func flowsCommand() *cobra.Command {
	var c ownCluster
	cmd := &cobra.Command{
		Use:   "flows",
		Short: "run the jobs of a Temporal cluster of your own, in place of serve",
		Long: "Run the jobs that vksplat farm submit --temporal starts on a Temporal cluster of your own, until Ctrl-C\n" +
			"or SIGTERM. Members of its namespace trust each other. Several may run: each job is run by one.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			ctx, cancel := signal.NotifyContext(context.Background(), cli.StopSignals()...)
			defer cancel()
			return c.run(ctx)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.address, "temporal", "", "`HOST:PORT` of the cluster")
	f.StringVar(&c.namespace, "namespace", namespace, "`namespace` of the cluster that the jobs are in")
	f.StringVar(&c.roots, "roots", store.UsualRoots(), "`file` that says where the roots of the store are, as on workers")
	f.StringVar(&c.files.Cert, "tls-cert", "", "show the PEM certificate in this `file`")
	f.StringVar(&c.files.Key, "tls-key", "", "the key of --tls-cert, a PEM `file`")
	f.StringVar(&c.files.CA, "tls-ca", "", "trust the PEM certificates in this `file`; system: those that the system "+
		"trusts (default with --tls-cert)")
	_ = cmd.MarkFlagRequired("temporal")
	return cmd
}

// run runs jobs until ctx ends.
func (c *ownCluster) run(ctx context.Context) error {
	if c.roots == "" {
		return fault.Usagef("name it by --roots, as on workers", "flows needs a file that says where the roots are")
	}
	secure, err := c.files.Config()
	if err != nil {
		return err
	}
	conn, err := c.dial(ctx, secure)
	if err != nil {
		return err
	}
	defer conn.Close()
	w, err := startFlows(conn, c.roots, nil)
	if err != nil {
		return &fault.Error{Op: "run jobs", Path: c.address, Err: err, Kind: fault.ErrTryAgain,
			Hint: "does the cluster have the namespace " + c.namespace + "?"}
	}
	fmt.Printf("running jobs of %s in the namespace %s\n", c.address, c.namespace)
	<-ctx.Done()
	w.Stop()
	return nil
}

// dial connects. It waits for a cluster that does not respond: after a power cut machines start in any order.
func (c *ownCluster) dial(ctx context.Context, secure *tls.Config) (client.Client, error) {
	for said := false; ; {
		conn, err := client.DialContext(ctx, client.Options{HostPort: c.address, Namespace: c.namespace,
			ConnectionOptions: client.ConnectionOptions{TLS: secure}, Logger: sdklog.NewStructuredLogger(quiet)})
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, fault.ErrInterrupted
		case flow.NeedsPass(err):
			return nil, &fault.Error{Op: "connect to Temporal", Path: c.address, Err: err, Kind: fault.ErrSetup,
				Hint: "give the certificates that the cluster asks for: --tls-cert, --tls-key, --tls-ca"}
		case !said:
			fmt.Fprintln(os.Stderr, "vksplat-farmd: waiting for the cluster:", flow.Away(err))
			said = true
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}
