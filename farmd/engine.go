package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
	"go.uber.org/fx"
	"google.golang.org/protobuf/types/known/durationpb"

	"vksplat/farmd/gate"
	"vksplat/farmd/registry"
	"vksplat/internal/fault"
)

const (
	// shards is the number of parts of the queue's history. A database keeps the number that it began with.
	shards = 4
	// retention is how long jobs that have ended can be listed.
	retention = 30 * 24 * time.Hour
	// clusterName is Temporal's name for this server. A database keeps it, too.
	clusterName = "active"
	loopback    = "127.0.0.1"
)

// What the server keeps in memory of the jobs that run, however many these are.
const (
	stateCache = 64 << 20 // bytes
	eventCache = 32 << 20 // bytes
	flowCache  = 100      // workflows, of which one of 500 tasks takes 2 MB
	// garbage is how many percent of what is in use may be garbage. Go's default of 100 takes a third more memory with
	// three jobs of 100,000 tasks.
	garbage = 50
)

// engine is Temporal's server and a client of it that may do everything.
type engine struct {
	server   temporal.Server
	client   client.Client
	frontend string // address for holders of passes, through package front
	speak    func() // lets Temporal write to the log; hush ends that
	hush     func()
}

// settingsOfTemporal are those that differ from its defaults.
func settingsOfTemporal() dynamicconfig.StaticClient {
	const manyRequests = 1_000_000
	return dynamicconfig.StaticClient{
		// Priority and fairness hold within a partition of a queue: one partition.
		dynamicconfig.MatchingEnableFairness.Key():              true,
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,
		// A worker asks several queues in turn with one slot, which an unanswered question holds.
		dynamicconfig.MatchingLongPollExpirationInterval.Key(): 3 * time.Second,
		// A queue that nobody asks for leaves the memory soon.
		dynamicconfig.MatchingMaxTaskQueueIdleTime.Key(): time.Minute,
		// Workers look which of their queues have tasks before they ask one.
		dynamicconfig.TaskQueueInfoByBuildIdTTL.Key(): time.Second,
		// Package gate bounds what each pass uses, so that nobody uses up what is everybody's.
		dynamicconfig.FrontendRPS.Key():                                         manyRequests,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  manyRequests,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        manyRequests,
		dynamicconfig.FrontendMaxConcurrentLongRunningRequestsPerInstance.Key(): manyRequests,
		// An idle device makes 10 of these a second, where the usual bound is 1,200.
		dynamicconfig.MatchingRPS.Key(): 5000,
		// Clients try again after some of the gate's errors.
		dynamicconfig.ExposeAuthorizerErrors.Key(): true,
		// Tasks go through queues, where the gate sees who takes them.
		dynamicconfig.EnableEagerWorkflowStart.Key():     false,
		dynamicconfig.EnableActivityEagerExecution.Key(): false,
		// Jobs that are not at work are read again when they are.
		dynamicconfig.HistoryCacheSizeBasedLimit.Key():        true,
		dynamicconfig.HistoryCacheHostLevelMaxSizeBytes.Key(): stateCache,
		dynamicconfig.EventsHostLevelCacheMaxSizeBytes.Key():  eventCache,
		// Not used, and refused by the gate.
		dynamicconfig.WorkerHeartbeatsEnabled.Key(): false,
		dynamicconfig.FrontendEnableSchedules.Key(): false,
		dynamicconfig.FrontendEnableBatcher.Key():   false,
	}
}

// startEngine starts Temporal's server on a database, for connections that proved is told of, and connects to it.
func startEngine(ctx context.Context, s settings, reg *registry.Registry, g *gate.Gate, db *database,
	proved func(net.Addr) bool) (*engine, error) {
	space := new(room)
	logger, speak, hush, err := newLogger(s.level, space)
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(len(temporal.Services))
	if err != nil {
		return nil, err
	}
	secure, err := allTLS(reg, proved)
	if err != nil {
		return nil, err
	}
	if err := createNamespace(&db.main); err != nil {
		return nil, &fault.Error{Op: "set up database", Err: err, Kind: fault.ErrTryAgain}
	}
	cfg, hosts := configOf(s, db, ports)
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	away := &outages{grace: heartbeat()}
	server, err := temporal.NewServerFx(fx.Options(temporal.TopLevelModule, fx.Provide(away.history)),
		temporal.WithConfig(cfg),
		temporal.ForServices(slices.DeleteFunc(slices.Clone(temporal.Services), func(name string) bool {
			return name == string(primitives.HistoryService) // that of outages
		})),
		temporal.WithStaticHosts(hosts),
		temporal.WithLogger(logger),
		temporal.WithDynamicConfigClient(settingsOfTemporal()),
		temporal.WithTLSConfigFactory(secure),
		temporal.WithClaimMapper(claimMapper),
		temporal.WithAuthorizer(authorizer{g}),
		temporal.WithChainedFrontendGrpcInterceptors(intercept(g, space, away)),
	)
	if err != nil {
		return nil, fmt.Errorf("start Temporal: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start Temporal: %w", err), server.Stop())
	}
	go away.watch(ctx)
	e := &engine{server: server, frontend: hosts[primitives.FrontendService].Self, speak: speak, hush: hush}
	e.client, err = client.Dial(client.Options{
		HostPort: hosts[primitives.InternalFrontendService].Self, Namespace: namespace, Identity: "farmd",
		ConnectionOptions: client.ConnectionOptions{TLS: secure.InternodeClientConfig},
		Logger:            sdklog.NewStructuredLogger(quiet),
	})
	if err != nil {
		e.close()
		return nil, fmt.Errorf("connect to Temporal: %w", err)
	}
	return e, nil
}

// configOf is Temporal's configuration: all services in this process, on ports of this machine only.
func configOf(s settings, db *database, ports []int) (*config.Config, map[primitives.ServiceName]static.Hosts) {
	cfg := &config.Config{}
	cfg.Global.Membership.MaxJoinDuration = 30 * time.Second
	cfg.Global.Membership.BroadcastAddress = loopback
	if s.metrics != 0 {
		cfg.Global.Metrics = &metrics.Config{Prometheus: &metrics.PrometheusConfig{
			ListenAddress: net.JoinHostPort(loopback, fmt.Sprint(s.metrics)), HandlerPath: "/metrics"}}
	}
	cfg.Persistence = config.Persistence{DefaultStore: "main", VisibilityStore: "visibility",
		NumHistoryShards: shards,
		DataStores:       map[string]config.DataStore{"main": {SQL: &db.main}, "visibility": {SQL: &db.visibility}}}
	cfg.ClusterMetadata = &cluster.Config{FailoverVersionIncrement: 10, MasterClusterName: clusterName,
		CurrentClusterName: clusterName, ClusterInformation: map[string]cluster.ClusterInformation{clusterName: {
			Enabled: true, InitialFailoverVersion: 1, RPCAddress: net.JoinHostPort(loopback, fmt.Sprint(ports[0]))}}}
	cfg.DCRedirectionPolicy.Policy = "noop"
	cfg.Archival.History.State, cfg.Archival.Visibility.State = "disabled", "disabled"
	cfg.NamespaceDefaults.Archival.History.State = "disabled"
	cfg.NamespaceDefaults.Archival.Visibility.State = "disabled"
	cfg.Services = map[string]config.Service{}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for i, name := range temporal.Services {
		cfg.Services[name] = config.Service{RPC: config.RPC{GRPCPort: ports[i], BindOnIP: loopback}}
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(net.JoinHostPort(loopback, fmt.Sprint(ports[i])))
	}
	return cfg, hosts
}

// createNamespace makes the farm's namespace where the database has none. The function works on Postgres, too.
func createNamespace(cfg *config.SQL) error {
	ns, err := sqlite.NewNamespaceConfig(clusterName, namespace, false, nil)
	if err != nil {
		return err
	}
	ns.Detail.Config.Retention = durationpb.New(retention)
	return sqlite.CreateNamespaces(cfg, ns)
}

// freePorts finds ports of this machine that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// openJobs counts the unfinished jobs of an owner.
func (e *engine) openJobs(ctx context.Context, owner string) (int, error) {
	resp, err := e.client.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: fmt.Sprintf(
		"WorkflowId STARTS_WITH '%s/' AND WorkflowType = '%s' AND ExecutionStatus = 'Running'", owner, flowType)})
	return int(resp.GetCount()), err
}

func (e *engine) close() {
	if e.client != nil {
		e.client.Close()
	}
	_ = e.server.Stop()
}
