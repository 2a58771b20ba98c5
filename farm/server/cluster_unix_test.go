//go:build unix

package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"vksplat/farm/queue"
)

// childOfCluster is one server of a cluster that somebody else runs: nothing of ours but the test's binary.
func childOfCluster(dir, listen, route string, routes []string) {
	options := &natsserver.Options{ServerName: filepath.Base(dir), JetStream: true, StoreDir: dir, SyncAlways: true, DisableJetStreamBanner: true}
	options.Host, options.Port = split(listen)
	options.Cluster.Name = "lab"
	options.Cluster.Host, options.Cluster.Port = split(route)
	options.Routes = natsserver.RoutesFromStr(strings.Join(routes, ","))
	s, err := natsserver.NewServer(options)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.Start()
	s.WaitForShutdown()
}

func split(address string) (string, int) {
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.Atoi(port)
	return host, number
}

// TestCluster runs a job on three servers of which each is killed once, as is each worker.
func TestCluster(t *testing.T) {
	if os.Getenv(longVariable) != "1" {
		t.Skip("VKSPLAT_LONG=1 runs a cluster of three servers")
	}
	var listen, route, urls, routes []string
	for range 3 {
		listen, route = append(listen, freeAddress(t)), append(route, freeAddress(t))
		urls, routes = append(urls, "nats://"+listen[len(listen)-1]), append(routes, "nats://"+route[len(route)-1])
	}
	var servers []*child
	for i := range 3 {
		args := append([]string{"cluster", filepath.Join(t.TempDir(), fmt.Sprintf("n%d", i)), listen[i], route[i]}, routes...)
		c := &child{t: t, args: strings.Join(args, "\n")}
		c.start()
		defer func() { c.kill() }()
		servers = append(servers, c)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	all := strings.Join(urls, ",")
	q := joinCluster(t, ctx, all)
	store := t.TempDir()
	var workers []*child
	for i := range 3 {
		c := &child{t: t, args: fmt.Sprintf("worker\nnode%d\n\n%s\n%s", i, all, store)}
		c.start()
		defer func() { c.kill() }()
		workers = append(workers, c)
	}
	plan := chaosPlan(150)
	start := time.Now()
	if err := q.Submit(ctx, plan); err != nil {
		t.Fatal(err)
	}
	t.Log("submitted in", time.Since(start))
	go release(ctx, q)
	random := rand.New(rand.NewPCG(1, 1))
	for _, c := range append(servers, workers...) {
		time.Sleep(time.Second + time.Duration(random.IntN(1000))*time.Millisecond)
		c.kill()
		time.Sleep(time.Second)
		c.start()
		time.Sleep(2 * time.Second) // a majority must have caught up before the next is killed
	}
	if _, err := q.Wait(ctx, plan.Name); err != nil {
		t.Fatal(err)
	}
	t.Log("took", time.Since(start))
	judgeChaos(t, q, plan, store)
}

// joinCluster waits for the cluster, sets a farm up on it and connects to that.
func joinCluster(t *testing.T, ctx context.Context, urls string) *queue.Queue {
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		nc, err := queue.DialCluster(urls, "", "test")
		if err == nil && queue.Replicas(nc) != 3 {
			err = errors.New("the servers do not know each other yet")
		}
		if err == nil {
			t.Cleanup(nc.Close)
			err = queue.Setup(ctx, nc, queue.Farm{Lease: queue.Duration(chaosLease), Replicas: queue.Replicas(nc)}, queue.Options{})
		}
		if err == nil {
			q, err := queue.Connect(ctx, nc, queue.Options{Log: testLog(t)})
			if err != nil {
				t.Fatal(err)
			}
			return q
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
