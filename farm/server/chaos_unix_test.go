//go:build unix

package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/farm/lab"
	"vksplat/farm/queue"
	"vksplat/scene"
)

const (
	childVariable = "VKSPLAT_FARM_TEST_CHILD" // makes the test binary a server or a worker: "server DIR LISTEN", "worker NODE TOKEN URL STORE", "cluster DIR LISTEN ROUTE ROUTES..."
	chaosLease    = 1500 * time.Millisecond
)

func TestMain(m *testing.M) {
	args := strings.Split(os.Getenv(childVariable), "\n")
	switch args[0] {
	case "server":
		childServer(args[1], args[2])
	case "worker":
		childWorker(args[1], args[2], args[3], args[4])
	case "cluster":
		childOfCluster(args[1], args[2], args[3], args[4:])
	default:
		// Most tests wait for a clock or for the disk, not for a processor. A flag of the command line comes later, and counts.
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	}
}

func childServer(dir, listen string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := Start(ctx, Options{Dir: dir, Listen: listen, Farm: queue.Farm{Lease: queue.Duration(chaosLease)}, Version: "test"})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	<-ctx.Done()
	s.Close()
}

// childWorker works until it is killed. Whatever happens to the server, it tries again. Without a token it works, and reconciles, for a cluster.
func childWorker(node, tokenFile, url, store string) {
	ctx := context.Background()
	var token queue.Token
	var err error
	if tokenFile != "" {
		token, err = queue.ReadToken(tokenFile)
	}
	for err == nil {
		token.URL = url
		connect := func() (*nats.Conn, error) { return queue.Dial(token, node) }
		if tokenFile == "" {
			connect = func() (*nats.Conn, error) { return queue.DialCluster(url, "", node) }
		}
		nc, dialErr := connect()
		if dialErr != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		var q *queue.Queue
		if q, err = queue.Connect(ctx, nc, queue.Options{Version: "test", Log: childLog(node)}); err != nil {
			break
		}
		if tokenFile == "" {
			go func() { _ = q.Reconcile(ctx, queue.ReconcileOptions{Name: node}) }()
		}
		var w *queue.Worker
		if w, err = q.Join(ctx, queue.WorkerInfo{Node: node, Home: node}); err != nil {
			break
		}
		var group sync.WaitGroup
		for slot := range 2 {
			group.Go(func() {
				for {
					err := work(ctx, w, queue.Slot{Device: strconv.Itoa(slot)}, func(l *queue.Lease) (string, error) { return stubTask(ctx, l, store) })
					fmt.Println(node, slot, err)
					_ = w.Await(ctx)
				}
			})
		}
		group.Wait()
	}
	fmt.Println(node, err)
	os.Exit(1)
}

func childLog(node string) *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn})).With("by", node)
}

// stubTask takes some steps, each with a checkpoint, from which another attempt goes on. It commits like the real store: the first manifest wins.
func stubTask(ctx context.Context, l *queue.Lease, store string) (manifest string, err error) {
	dir := filepath.Join(store, strconv.Itoa(l.Index))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	if hash, err := manifestOf(dir); err == nil {
		return hash, nil // an attempt before this one died after its commit
	}
	const steps = 6
	sum, kept := []byte(l.Task.Name), int64(0)
	for kept < steps {
		made, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("ckpt-%d-a*", kept+1)))
		if err != nil || len(made) == 0 {
			break
		}
		if sum, err = os.ReadFile(made[0]); err != nil {
			return "", err
		}
		kept++
	}
	random := rand.New(rand.NewPCG(uint64(l.Index), uint64(l.Attempt)))
	for step := kept; step < steps; {
		select {
		case <-l.Context().Done():
			return "", context.Cause(l.Context())
		case <-time.After(time.Duration(5+random.IntN(60)) * time.Millisecond):
		}
		if strings.HasPrefix(l.Task.Name, "flaky") && step == 2 && random.IntN(2) == 0 {
			return "", errors.New("device lost")
		}
		hash := sha256.Sum256(sum)
		sum = hash[:]
		step++
		l.Progress(step, steps, "")
		name := fmt.Sprintf("ckpt-%d-a%d", step, l.Attempt)
		if err := errors.Join(os.WriteFile(filepath.Join(dir, "new-"+name), sum, 0o644), os.Rename(filepath.Join(dir, "new-"+name), filepath.Join(dir, name))); err != nil {
			return "", err
		}
	}
	if strings.HasPrefix(l.Task.Name, "bad") {
		return "", &scene.Error{Op: "read scene", Err: errors.New("no photos")}
	}
	if err := l.Verify(ctx); err != nil {
		return "", err
	}
	own := filepath.Join(dir, fmt.Sprintf("out-a%d", l.Attempt))
	if err := os.WriteFile(own, sum, 0o644); err != nil {
		return "", err
	}
	if err := os.Link(own, filepath.Join(dir, "MANIFEST")); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return manifestOf(dir)
}

func manifestOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "MANIFEST"))
	return hex.EncodeToString(data), err
}

// undisturbed is the manifest of a task of that name.
func undisturbed(name string) string {
	sum := []byte(name)
	for range 6 {
		hash := sha256.Sum256(sum)
		sum = hash[:]
	}
	return hex.EncodeToString(sum)
}

// child is a process that is killed and started again.
type child struct {
	t    *testing.T
	args string
	cmd  *exec.Cmd
}

func (c *child) start() {
	c.cmd = exec.Command(os.Args[0])
	c.cmd.Env = append(os.Environ(), childVariable+"="+c.args)
	c.cmd.Stdout, c.cmd.Stderr = c.t.Output(), c.t.Output()
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

func TestChaos(t *testing.T) {
	t.Parallel()
	bounded(t)
	seed, tasks, workers, most := uint64(7), 30, 3, 8
	if os.Getenv(longVariable) == "1" {
		seed, tasks, workers, most = uint64(time.Now().UnixNano()), 300, 4, 1000
	}
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir, store := filepath.Join(t.TempDir(), "farm"), t.TempDir()
	listen := freeAddress(t)
	server := &child{t: t, args: "server\n" + dir + "\n" + listen}
	server.start()
	defer func() { server.kill() }()
	token := waitForToken(t, dir)
	q := dial(t, token)
	workerToken, err := NewToken(dir, Work, "worker", 0)
	if err != nil {
		t.Fatal(err)
	}
	tokenFile := filepath.Join(t.TempDir(), "worker.token")
	if err := writeJSON(tokenFile, workerToken); err != nil {
		t.Fatal(err)
	}
	network, err := lab.NewProxy(listen)
	if err != nil {
		t.Fatal(err)
	}
	defer network.Close()
	var group []*child
	for i := range workers {
		url := token.URL
		if i%2 == 0 {
			url = "nats://" + network.Addr()
		}
		c := &child{t: t, args: fmt.Sprintf("worker\nnode%d\n%s\n%s\n%s", i, tokenFile, url, store)}
		c.start()
		group = append(group, c)
		defer func() { c.kill() }()
	}
	plan := chaosPlan(tasks)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	if err := q.Submit(ctx, plan); err != nil {
		t.Fatal(err)
	}
	go release(ctx, q)
	done := make(chan error, 1)
	go func() {
		_, err := q.Wait(ctx, plan.Name)
		done <- err
	}()
	deeds := disturb(t, random, most, server, group, network, done)
	t.Log("disturbed by", deeds)
	judgeChaos(t, q, plan, store)
}

// chaosPlan has tasks that work, some that fail at times, some that always do, and some that need others.
func chaosPlan(n int) queue.JobPlan {
	plan := queue.JobPlan{Name: "chaos"}
	for i := range n {
		task := queue.Task{Name: fmt.Sprintf("task-%d", i), MaxAttempts: 1000, Backoff: 100 * time.Millisecond, BackoffMax: time.Second}
		switch {
		case i%17 == 16:
			task.Name, task.MaxAttempts = fmt.Sprintf("bad-%d", i), 2
		case i%10 == 9:
			task.Name = fmt.Sprintf("flaky-%d", i)
		case i%4 == 3:
			task.Needs = []int{i - 3, i - 1}
		}
		plan.Tasks = append(plan.Tasks, task)
	}
	return plan
}

// release ends quarantines, as a person would who knows that failures are made up.
func release(ctx context.Context, q *queue.Queue) {
	for wait := time.Tick(300 * time.Millisecond); ctx.Err() == nil; <-wait {
		nodes, _ := q.Nodes(ctx)
		for _, node := range nodes {
			if node.Quarantine != "" {
				_ = q.Undrain(ctx, node.Node)
			}
		}
	}
}

// disturb kills, stops and cuts off, most times at most, until the job has ended.
func disturb(t *testing.T, random *rand.Rand, most int, server *child, workers []*child, network *lab.Proxy, done <-chan error) map[string]int {
	deeds := map[string]int{}
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return deeds
		case <-time.After(time.Duration(200+random.IntN(800)) * time.Millisecond):
		}
		if most--; most < 0 {
			continue
		}
		w := workers[random.IntN(len(workers))]
		switch random.IntN(8) {
		case 0, 1, 2:
			deeds["killed workers"]++
			w.kill()
			w.start()
		case 3:
			deeds["killed servers"]++
			server.kill()
			server.start()
		case 4, 5:
			deeds["stopped workers"]++
			_ = w.cmd.Process.Signal(syscall.SIGSTOP)
			time.Sleep(chaosLease * 3 / 2)
			_ = w.cmd.Process.Signal(syscall.SIGCONT)
		case 6:
			deeds["frozen networks"]++
			network.Freeze(chaosLease*3/2, false)
		case 7:
			deeds["cut networks"]++
			network.Freeze(chaosLease/2, true)
		}
	}
}

// judgeChaos checks that each task ended with exactly one right manifest or with a stated failure.
func judgeChaos(t *testing.T, q *queue.Queue, plan queue.JobPlan, store string) {
	_, tasks, err := q.Show(t.Context(), plan.Name)
	if err != nil {
		t.Fatal(err)
	}
	attempts, lost, discarded := 0, 0, 0
	for i, task := range tasks {
		manifest, err := manifestOf(filepath.Join(store, strconv.Itoa(i)))
		outs, _ := filepath.Glob(filepath.Join(store, strconv.Itoa(i), "out-a*"))
		discarded += max(0, len(outs)-1)
		attempts += task.Entry.Attempt
		lost += len(slices.DeleteFunc(slices.Clone(task.Entry.Failures), func(f queue.Failure) bool { return !f.Lost }))
		switch {
		case strings.HasPrefix(task.Name, "bad"):
			if task.State != queue.Failed || task.Entry.Error == "" || err == nil {
				t.Errorf("%s: %s, %q, manifest %q", task.Name, task.State, task.Entry.Error, manifest)
			}
		case task.State == queue.Skipped:
			if !slices.ContainsFunc(plan.Tasks[i].Needs, func(need int) bool { return tasks[need].State == queue.Failed || tasks[need].State == queue.Skipped }) || err == nil {
				t.Errorf("%s is skipped, manifest %q", task.Name, manifest)
			}
		case task.State != queue.Succeeded || manifest != undisturbed(task.Name) || task.Entry.Manifest != manifest:
			t.Errorf("%s: %s, manifest %q, known %q, want %q", task.Name, task.State, manifest, task.Entry.Manifest, undisturbed(task.Name))
		}
	}
	t.Logf("%d tasks, %d attempts, %d lost owners, %d outputs discarded", len(tasks), attempts, lost, discarded)
	if found, err := q.Fsck(t.Context(), nil, false); err != nil || len(found) > 0 {
		t.Error(found, err)
	}
}

// waitForToken waits until a server has started in the folder.
func waitForToken(t *testing.T, dir string) queue.Token {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		token, err := queue.ReadToken(filepath.Join(dir, adminFile))
		if err == nil {
			nc, dialErr := queue.Dial(token, "wait")
			if err = dialErr; err == nil {
				_, err = queue.Connect(t.Context(), nc, queue.Options{})
				nc.Close()
			}
		}
		if err == nil {
			return token
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}
