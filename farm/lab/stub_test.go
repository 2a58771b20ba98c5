//go:build linux

package lab

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"vksplat/farm/queue"
	"vksplat/farm/server"
	"vksplat/farm/spec"
	"vksplat/farm/store"
	"vksplat/farm/task"
	"vksplat/farm/worker"
	"vksplat/scene"
)

// The test program is also the server, the workers and the tasks: this variable says which.
const partVariable = "FARM_WORKER_TEST_PART"

func TestMain(m *testing.M) {
	switch os.Getenv(partVariable) {
	case "server":
		partServer(os.Args[1], os.Args[2])
	case "worker":
		partWorker(os.Args[1], os.Args[2], os.Args[3])
	case "task":
		os.Exit(partTask())
	default:
		os.Exit(m.Run())
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "vksplat: error:", err)
		os.Exit(1)
	}
}

const (
	testLease = time.Second
	patience  = time.Minute // for machines that do much else
)

// partServer serves a folder until it is killed.
func partServer(dir, listen string) {
	_, err := server.Start(context.Background(), server.Options{Dir: dir, Listen: listen, Farm: queue.Farm{Lease: queue.Duration(testLease)}, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	must(err)
	select {}
}

// partWorker works until SIGTERM.
func partWorker(token, dir, name string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var nc *nats.Conn
	for nc == nil { // as systemd starts it again
		t, err := queue.ReadToken(token)
		must(err)
		if nc, err = queue.Dial(t, name); err != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	q, err := queue.Connect(ctx, nc, queue.Options{Version: "test"})
	must(err)
	must(os.Setenv(partVariable, "task"))
	must(worker.Run(ctx, worker.Options{Queue: q, Node: name, Devices: []worker.Device{{ID: "device-" + name, Name: "Test GPU", MemoryBytes: 8 << 30}}, Others: 1,
		Roots: func(string) string { return filepath.Join(dir, "roots.toml") }, Work: filepath.Join(dir, "work-"+name), Locks: filepath.Join(dir, "locks"), Mirror: true,
		Command: []string{os.Args[0]}, Lost: "device lost", Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}))
	os.Exit(75)
}

// Tasks of the tests are made-up captures whose number of points says what happens.
const (
	pointsBad      = 101 // exit code 65
	pointsHang     = 102 // the first attempt says nothing more
	pointsLost     = 103 // the first attempts lose the device
	pointsCrash    = 104 // the first attempt crashes
	pointsQuiet    = 106 // makes no step for quietFor, but is alive
	pointsLong     = 105 // stops only by SIGTERM, with a checkpoint
	pointsShow     = 107 // has a picture of what it makes, and then what is none
	stubSteps      = 12
	stubStep       = 15 * time.Millisecond
	stubCheckpoint = "steps"
	quietFor       = 6 * time.Second
)

// partTask is run-task without work: it counts steps, keeps them where the next attempt finds them, and commits bytes that follow from the task alone.
func partTask() int {
	fs := flag.NewFlagSet("run-task", flag.ExitOnError)
	file, index, attempt := fs.String("spec", "", ""), fs.Int("index", 0, ""), fs.Int("attempt", 0, "")
	rootsFile, work := fs.String("roots", "", ""), fs.String("work", "", "")
	_, _ = fs.String("progress", "", ""), fs.String("device", "", "")
	_ = fs.Bool("fenced", false, "")
	must(fs.Parse(os.Args[1:]))
	data, err := os.ReadFile(*file)
	must(err)
	job, err := spec.Parse(*file, data)
	must(err)
	plan, err := job.Plan()
	must(err)
	data, err = os.ReadFile(*rootsFile)
	must(err)
	roots, err := store.ReadRoots(*rootsFile, data)
	must(err)
	outputs, err := roots.Open(job.Store.Outputs)
	must(err)
	t := &plan.Tasks[*index]
	key := task.KeyOf(job, t)
	generation, err := store.Generation(outputs, key)
	must(err)
	if m, err := store.Result(context.Background(), outputs, key); err != nil || m != nil {
		must(err)
		return 0
	}
	dir := filepath.Join(*work, fmt.Sprintf("%.12s-%d", job.Hash(), *index))
	must(os.MkdirAll(dir, 0o777))
	if code := stubWork(t, dir, *attempt); code != 0 {
		return code
	}
	must(os.WriteFile(filepath.Join(dir, "result"), stubResult(t), 0o666))
	root, err := os.OpenRoot(dir)
	must(err)
	_, _, err = store.Commit(context.Background(), outputs, key, root, []string{"result"}, store.Made{Job: job.Name, JobHash: job.Hash(), Hash: plan.Hash(*index), Task: t.Name, Index: t.Index, Attempt: *attempt, Generation: generation})
	must(err)
	return 0
}

// stubPicture is what a task shows.
func stubPicture() []byte {
	img := scene.Image{Width: 32, Height: 24, Pix: make([]byte, 4*32*24)}
	data, err := img.JPEG(80)
	must(err)
	return data
}

func stubResult(t *spec.Task) []byte {
	sum := sha256.Sum256([]byte(t.Name))
	return sum[:]
}

func pointsOf(t *spec.Task) int {
	for _, f := range t.Flags {
		if f.Name == "points" {
			n, _ := strconv.Atoi(f.Value)
			return n
		}
	}
	return 0
}

// stubWork counts steps from the last checkpoint on.
func stubWork(t *spec.Task, dir string, attempt int) int {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	first := attempt == 1
	step := 0
	if data, err := os.ReadFile(filepath.Join(dir, stubCheckpoint)); err == nil {
		step, _ = strconv.Atoi(string(data))
	}
	points := pointsOf(t)
	for ; step < stubSteps || points == pointsLong && first; step++ {
		line, _ := json.Marshal(task.Progress{Task: t.Name, Step: step, Of: stubSteps, Message: "counting"})
		fmt.Printf("%s\n", line)
		switch {
		case points == pointsBad && step == 3:
			fmt.Fprintln(os.Stderr, "vksplat: error: these photos are no photos")
			return 65
		case points == pointsQuiet && step == 3:
			const every = 100 * time.Millisecond
			for life := range int64(quietFor / every) {
				line, _ := json.Marshal(task.Progress{Task: t.Name, Step: step, Of: stubSteps, Message: "counting", Life: life + 1})
				fmt.Printf("%s\n", line)
				time.Sleep(every)
			}
		case points == pointsShow && step == 3:
			for _, data := range [][]byte{stubPicture(), []byte("<script>alert(1)</script>")} {
				name := filepath.Join(dir, "preview.jpg")
				must(os.WriteFile(name, data, 0o666))
				line, _ := json.Marshal(task.Progress{Task: t.Name, Step: step, Of: stubSteps, Message: "counting", Rate: 5, Unit: "pictures", Preview: name})
				fmt.Printf("%s\n", line)
				time.Sleep(500 * time.Millisecond)
			}
		case points == pointsHang && first && step == 3:
			select {}
		case points == pointsLost && attempt <= 2 && step == 3:
			fmt.Fprintln(os.Stderr, "vksplat: error: device lost")
			return 75
		case points == pointsCrash && first && step == 3:
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
		}
		select {
		case <-signals:
			fmt.Fprintln(os.Stderr, "vksplat: error: stopped")
			return 75
		case <-time.After(stubStep):
		}
		must(os.WriteFile(filepath.Join(dir, stubCheckpoint), []byte(strconv.Itoa(step+1)), 0o666))
	}
	return 0
}
