package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// Options of a server. The caller holds the folder's lock: two servers on one folder would damage it.
type Options struct {
	Dir      string // made if it is missing
	Listen   string // host:port; "" means 127.0.0.1:4222, port 0 any that is free
	OwnTLS   bool   // with a certificate made here, whose authority goes into tokens
	CertFile string // or with this one, in PEM
	KeyFile  string
	Hosts    []string // names and addresses that clients may use, beside the host of Listen; the first goes into tokens
	MaxStore int64    // bytes on disk; 0 means 16 GiB
	Farm     queue.Farm
	Version  string
	Log      *slog.Logger
	Ended    func(context.Context, queue.JobStatus) error // tells that a job has ended, see queue.ReconcileOptions; nil for nobody
}

// Server is a running one.
type Server struct {
	options Options
	log     *slog.Logger
	nats    atomic.Pointer[natsserver.Server] // another one after the disk was full
	natsLog *natsLog
	at      address
	self    nkeys.KeyPair // of connections inside this process
	ring    *keyring
	nc      *nats.Conn
	queue   *queue.Queue
	stop    context.CancelFunc
	group   sync.WaitGroup

	config *natsserver.Options

	disk disk

	lock      sync.Mutex
	keys      []Key           // as they were read last; nil before the first time
	allowed   map[string]Role // public keys let in
	complaint string          // the last one about keys
}

const (
	defaultListen = "127.0.0.1:4222"
	defaultStore  = 16 << 30
	maxPayload    = 1 << 20
	maxClients    = 1024
	lookForKeys   = time.Second
	startWithin   = time.Minute

	// ownName is what the reconciler beside a server in this process is elected by. No node has the name, and there is one such process: the caller has the folder's lock.
	ownName = "embedded server"
)

// Start runs a server until Close. It recovers what the folder holds, and makes credentials for this machine at the first start.
func Start(ctx context.Context, options Options) (*Server, error) {
	s := &Server{options: options, log: options.Log}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.options.Listen = cmp.Or(options.Listen, defaultListen)
	s.options.MaxStore = cmp.Or(options.MaxStore, defaultStore)
	if err := s.configure(); err != nil {
		return nil, err
	}
	if err := s.run(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// configure prepares the folder and the options of the NATS server.
func (s *Server) configure() error {
	const op = "start farm"
	host, portText, err := net.SplitHostPort(s.options.Listen)
	port, portErr := strconv.Atoi(portText)
	if err = errors.Join(err, portErr); err != nil || port < 0 || port > 65535 {
		return failure(op, s.options.Listen, errors.New("this is no host:port"), "Write it like 127.0.0.1:4222.", scene.ErrUsage)
	}
	withTLS := s.options.OwnTLS || s.options.CertFile != ""
	if !withTLS && !isLoopback(host) {
		return failure(op, s.options.Listen, errors.New("other machines could listen in"), "Add --tls-auto, or a certificate, to listen beyond this machine.", scene.ErrUsage)
	}
	if err := os.MkdirAll(filepath.Join(s.options.Dir, keyFolder), 0o700); err != nil {
		return failure(op, s.options.Dir, err, "", scene.ErrTryAgain)
	}
	if s.self, err = nkeys.CreateUser(); err != nil {
		return failure(op, "", err, "", nil)
	}
	public, err := s.self.PublicKey()
	if err != nil {
		return failure(op, "", err, "", nil)
	}
	s.ring = &keyring{own: public}
	s.config = &natsserver.Options{
		ServerName: "vksplat-farm", Host: host, Port: cmp.Or(port, natsserver.RANDOM_PORT), NoSigs: true,
		JetStream: true, StoreDir: filepath.Join(s.options.Dir, "jetstream"), SyncAlways: true, DisableJetStreamBanner: true,
		JetStreamMaxStore: s.options.MaxStore, JetStreamMaxMemory: 64 << 20,
		CustomClientAuthentication: s.ring, AlwaysEnableNonce: true,
		MaxPayload: maxPayload, MaxConn: maxClients, PingInterval: 5 * time.Second, MaxPingsOut: 2,
	}
	if withTLS {
		if err := s.secure(host); err != nil {
			return failure(op, s.options.Dir, err, "", scene.ErrUsage)
		}
	}
	return s.readKeys()
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// secure sets the certificate of the server.
func (s *Server) secure(host string) error {
	var certificate tls.Certificate
	var err error
	if s.options.OwnTLS {
		certificate, s.at.CA, err = ownCertificate(filepath.Join(s.options.Dir, "tls"), s.hosts(host))
	} else {
		certificate, err = tls.LoadX509KeyPair(s.options.CertFile, s.options.KeyFile)
	}
	s.config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
	return err
}

// hosts are the names by which clients may know the server.
func (s *Server) hosts(host string) []string {
	hosts := slices.Clone(s.options.Hosts)
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		hosts = append(hosts, host)
	} else if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	for _, local := range []string{"localhost", "127.0.0.1"} {
		if !slices.Contains(hosts, local) {
			hosts = append(hosts, local)
		}
	}
	return hosts
}

// tryListen finds out whether the address is free: the NATS server itself only logs that, and never becomes ready.
func (s *Server) tryListen() error {
	l, err := net.Listen("tcp", s.options.Listen)
	if err != nil {
		return err
	}
	return l.Close()
}

// run starts the NATS server, the farm on it, and what goes on in the background.
func (s *Server) run(ctx context.Context) (err error) {
	const op = "start farm"
	if err := s.tryListen(); err != nil {
		return failure(op, s.options.Listen, err, "Stop what listens there, or give another port with --listen.", scene.ErrTryAgain)
	}
	if s.natsLog, err = openNatsLog(s.options.Dir, s.log); err != nil {
		return err
	}
	tcp, err := s.startNATS()
	if err != nil {
		return err
	}
	scheme := "nats://"
	if s.config.TLSConfig != nil {
		scheme = "tls://"
	}
	s.at.URL = scheme + net.JoinHostPort(s.hosts(s.config.Host)[0], strconv.Itoa(tcp.Port))
	if err := writeJSON(filepath.Join(s.options.Dir, addressFile), s.at); err != nil {
		return failure(op, s.options.Dir, err, "", scene.ErrTryAgain)
	}
	if err := s.ownToken(); err != nil {
		return err
	}
	if s.nc, err = s.Connect("serve"); err != nil {
		return err
	}
	living, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if err := queue.ServeTrouble(s.nc, s.disk.trouble); err != nil {
		return failure(op, s.options.Dir, err, "", nil)
	}
	s.group.Go(func() { s.watchDisk(living) })
	queueOptions := queue.Options{Version: s.options.Version, Log: s.log}
	if err := queue.Setup(ctx, s.nc, s.options.Farm, queueOptions); err != nil {
		return err
	}
	if s.queue, err = queue.Connect(ctx, s.nc, queueOptions); err != nil {
		return err
	}
	s.group.Go(func() { s.watchKeys(living) })
	s.group.Go(func() {
		_ = s.queue.Reconcile(living, queue.ReconcileOptions{Name: ownName, Sole: true, Ended: s.options.Ended})
	})
	return nil
}

// startNATS starts the NATS server on what the folder holds, and says where it listens.
func (s *Server) startNATS() (*net.TCPAddr, error) {
	const op = "start farm"
	server, err := natsserver.NewServer(s.config.Clone())
	if err != nil {
		return nil, failure(op, s.options.Dir, err, "", nil)
	}
	server.SetLoggerV2(s.natsLog, false, false, false)
	server.Start()
	s.nats.Store(server)
	if !server.ReadyForConnections(startWithin) {
		return nil, failure(op, s.options.Listen, errors.New("the server does not start: is the address in use?"), "nats.log in the server's folder says more.", scene.ErrTryAgain)
	}
	tcp, ok := server.Addr().(*net.TCPAddr)
	if !ok {
		return nil, failure(op, s.options.Listen, fmt.Errorf("it listens at %v", server.Addr()), "", nil)
	}
	return tcp, nil
}

// stopNATS ends it, and all connections. What was acknowledged stays.
func (s *Server) stopNATS() {
	if server := s.nats.Load(); server != nil {
		server.Shutdown()
		server.WaitForShutdown()
	}
}

// InProcessConn implements nats.InProcessConnProvider: a connection that comes back finds the NATS server that runs then.
func (s *Server) InProcessConn() (net.Conn, error) { return s.nats.Load().InProcessConn() }

// ownToken makes the token for commands on this machine, or writes it anew where the server has moved.
func (s *Server) ownToken() error {
	path := filepath.Join(s.options.Dir, adminFile)
	token, err := queue.ReadToken(path)
	if err == nil {
		token.URL, token.CA = s.at.URL, s.at.CA
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	} else if token, err = NewToken(s.options.Dir, Admin, "this machine", 0); err != nil {
		return err
	} else if err = s.readKeys(); err != nil {
		return err
	}
	if err := writeJSON(path, token); err != nil {
		return failure("write token", path, err, "", scene.ErrTryAgain)
	}
	return nil
}

// Connect gives a connection inside this process, with all rights.
func (s *Server) Connect(name string) (*nats.Conn, error) {
	seed, err := s.self.Seed()
	if err != nil {
		return nil, failure("connect to farm", "", err, "", nil)
	}
	return queue.Dial(queue.Token{URL: "nats://in-process", Seed: string(seed)}, name, nats.InProcessServer(s))
}

// Queue is the server's own connection to the farm.
func (s *Server) Queue() *queue.Queue { return s.queue }

// URL is where clients find the server.
func (s *Server) URL() string { return s.at.URL }

// AdminToken is the file of the token for commands on this machine.
func (s *Server) AdminToken() string { return filepath.Join(s.options.Dir, adminFile) }

// Close ends the server. What was acknowledged stays.
func (s *Server) Close() {
	if s.stop != nil {
		s.stop()
	}
	s.group.Wait()
	if s.nc != nil {
		s.nc.Close()
	}
	s.stopNATS()
	if s.natsLog != nil {
		s.natsLog.close()
	}
}

// watchKeys lets in and shuts out as the folder of keys, and time, say.
func (s *Server) watchKeys(ctx context.Context) {
	tick := time.NewTicker(lookForKeys)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.readKeys(); err != nil {
			s.log.Error("keys cannot be changed", "cause", err)
		}
	}
}

// readKeys reads the folder, and changes who may connect where that has changed. Connections of others end. Who was let in stays so while the disk
// does not say otherwise: a removed file revokes, one that cannot be read does not.
func (s *Server) readKeys() error {
	s.lock.Lock()
	defer s.lock.Unlock()
	keys, unread, err := listKeys(s.options.Dir)
	if complaint := fmt.Sprint(err); complaint != s.complaint {
		s.complaint = complaint
		if err != nil {
			s.log.Error("keys cannot be read: no others are let in", "cause", err)
		}
	}
	if err != nil && unread == nil { // not even the folder
		if s.keys == nil {
			return err
		}
		keys = s.keys
	}
	for _, key := range s.keys {
		if unread[key.Public] {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, compareKeys)
	s.keys = append([]Key{}, keys...)
	allowed := letIn(keys, time.Now())
	if s.allowed != nil && maps.Equal(allowed, s.allowed) {
		return nil
	}
	s.ring.set(allowed)
	if server := s.nats.Load(); server != nil {
		if err := s.ring.evict(server); err != nil {
			return failure("change keys", s.options.Dir, err, "", nil)
		}
		s.log.Info("keys changed", "allowed", len(allowed))
	}
	s.allowed = allowed
	return nil
}
