package proof

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"vksplat/farm/flow"
)

// residentMB is the memory of the server.
func (s *server) residentMB() int {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Skip("needs /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return kb / 1024
}

// silent leaves what is read to others.
type silent struct{ net.Conn }

func (silent) Read([]byte) (int, error) { return 0, io.EOF }
func (silent) Close() error             { return nil }

// halfHandshake begins TLS, and then a message that never ends.
func halfHandshake(c net.Conn) {
	_ = tls.Client(silent{c}, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}).Handshake()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil {
		_, _ = c.Write(append([]byte{0x17, 3, 3, 0x40, 0}, make([]byte, 300)...))
	}
}

// 1,500 sockets that say nothing, or begin a handshake, lock nobody out, and most of them are closed at once.
func TestIdleSockets(t *testing.T) {
	t.Run("silent", func(t *testing.T) { idleSockets(t, func(net.Conn) {}) })
	t.Run("half", func(t *testing.T) { idleSockets(t, halfHandshake) })
}

func idleSockets(t *testing.T, begin func(net.Conn)) {
	s := serve(t)
	p := s.join("--role", "view", "--name", "wall")
	before := s.residentMB()
	var idle []net.Conn
	defer func() {
		for _, c := range idle {
			_ = c.Close()
		}
	}()
	for range 1500 {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
		begin(c)
	}
	began := time.Now()
	if _, err := s.client(p).CountWorkflow(t.Context(),
		&workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
		t.Error(err)
	}
	answered := time.Since(began)
	var closed atomic.Int32
	var all sync.WaitGroup
	for _, c := range idle {
		all.Go(func() {
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			if _, err := io.Copy(io.Discard, c); !errors.Is(err, os.ErrDeadlineExceeded) {
				closed.Add(1)
			}
		})
	}
	all.Wait() // the last ones after ten seconds
	t.Logf("a viewer was answered after %.2f s; memory went from %d to %d MB", answered.Seconds(), before,
		s.residentMB())
	if closed.Load() != 1500 || answered > 20*time.Second {
		t.Errorf("%d of 1500 sockets were closed", closed.Load())
	}
}

// One user's flood is bounded, in jobs and in requests, while another one is served.
func TestFlood(t *testing.T) {
	s := serve(t)
	anna, ben := s.join("--role", "submit", "--name", "anna"), s.join("--role", "submit", "--name", "ben")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	from := time.Now()
	var started, listed, refused, odd atomic.Int32
	var all sync.WaitGroup
	for n := range 40 {
		c := s.conn(ben)
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				method, req, count := "ListWorkflowExecutions",
					any(&workflowservice.ListWorkflowExecutionsRequest{Namespace: "vksplat"}), &listed
				if n%2 == 0 {
					method, req, count = "StartWorkflowExecution", startOf("ben", fmt.Sprintf("j%d-%d", n, i)),
						&started
				}
				switch err := c.Invoke(ctx, service+method, req, answerOf(t, method)); status.Code(err) {
				case codes.OK:
					count.Add(1)
				case codes.ResourceExhausted:
					refused.Add(1)
				case codes.DeadlineExceeded, codes.Canceled:
				default:
					odd.Add(1)
				}
			}
		})
	}
	c := s.conn(anna)
	slowest, n := time.Duration(0), 0
	// He is served until he is refused; she is served then, too.
	for served := 0; served < 10 || started.Load() < 100 || refused.Load() < 100; n++ {
		began := time.Now()
		if err := invoke(ctx, c, service+"StartWorkflowExecution", startOf("anna", fmt.Sprintf("j%d", n)),
			answerOf(t, "StartWorkflowExecution")); err != nil {
			t.Fatalf("anna after %d jobs: %v; ben: %d jobs, %d refused", n, err, started.Load(), refused.Load())
		}
		if refused.Load() > 0 {
			served++
		}
		slowest = max(slowest, time.Since(began))
		time.Sleep(250 * time.Millisecond) // as a person with a script
	}
	cancel()
	all.Wait()
	took := time.Since(from).Seconds()
	t.Logf("in %.1f s ben: %d jobs, %d lists, %d refused; anna: %d jobs, the slowest took %.2f s", took,
		started.Load(), listed.Load(), refused.Load(), n, slowest.Seconds())
	// 100 at once and 5 a second; 50 at once and 10 a second.
	if float64(started.Load()) > 101+5*took || float64(listed.Load()) > 51+10*took || odd.Load() > 0 {
		t.Errorf("%d odd answers", odd.Load())
	}
}

func startOf(owner, job string) *workflowservice.StartWorkflowExecutionRequest {
	return &workflowservice.StartWorkflowExecutionRequest{Namespace: "vksplat", WorkflowId: owner + "/" + job,
		WorkflowType: &commonpb.WorkflowType{Name: flow.JobType},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: flow.FlowQueue},
		RequestId:    owner + job}
}

// Large requests are refused, whatever they are, and the server goes on.
func TestOversized(t *testing.T) {
	s := serve(t)
	p := s.join("--role", "submit", "--name", "ben")
	worker := s.join("--role", "worker", "--name", "gpu1")
	big := func(n int) *commonpb.Payloads {
		return &commonpb.Payloads{Payloads: []*commonpb.Payload{{Data: make([]byte, n)}}}
	}
	for _, n := range []int{40 << 10, 3 << 20, 5 << 20, 60 << 20} {
		start := startOf("ben", "big")
		start.Input = big(n)
		err := invoke(t.Context(), s.conn(p), service+"StartWorkflowExecution", start, answerOf(t,
			"StartWorkflowExecution"))
		if code := status.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted {
			t.Errorf("a start of %d bytes: %v", n, err)
		}
		err = invoke(t.Context(), s.conn(worker), service+"RecordActivityTaskHeartbeat",
			&workflowservice.RecordActivityTaskHeartbeatRequest{
				Namespace: "vksplat", TaskToken: []byte("x"), Details: big(max(n, 100<<10))}, answerOf(t,
				"RecordActivityTaskHeartbeat"))
		if code := status.Code(err); code != codes.InvalidArgument && code != codes.ResourceExhausted {
			t.Errorf("a heartbeat of %d bytes: %v", n, err)
		}
	}
	if _, err := s.client(p).CountWorkflow(t.Context(),
		&workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
		t.Error(err)
	}
	if mb := s.residentMB(); mb > 600 {
		t.Errorf("the server takes %d MB", mb)
	}
}

// Made-up names of queues cost the server little memory: most are refused, before Temporal makes queues of them.
func TestMadeUpQueues(t *testing.T) {
	s := serve(t)
	c := s.conn(s.join("--role", "worker", "--name", "gpu1"))
	wall := s.conn(s.join("--role", "view", "--name", "wall"))
	before, asked := s.residentMB(), map[string]int{}
	ask := func(c *grpc.ClientConn, queue string) bool {
		for {
			err := invoke(t.Context(), c, service+"DescribeTaskQueue", &workflowservice.DescribeTaskQueueRequest{
				Namespace: "vksplat", TaskQueue: &taskqueuepb.TaskQueue{Name: queue},
				TaskQueueType: enumspb.TASK_QUEUE_TYPE_ACTIVITY}, &workflowservice.DescribeTaskQueueResponse{})
			switch code := status.Code(err); {
			case code == codes.ResourceExhausted: // 50 a second for people
				time.Sleep(20 * time.Millisecond)
				continue
			case err != nil && code != codes.PermissionDenied:
				t.Fatal(err)
			}
			return err == nil
		}
	}
	for i := range 600 {
		for queue, c := range map[string]*grpc.ClientConn{"pool/any/x%d": c, "pool/any/device/x%d/*": c,
			"pool/any/vram-24%d": c, "pool/any/cpu/%d": wall} {
			if ask(c, fmt.Sprintf(queue, i)) {
				asked[queue]++
			}
		}
	}
	grown := s.residentMB() - before
	t.Logf("memory grew by %d MB", grown)
	if len(asked) != 1 || asked["pool/any/device/x%d/*"] != 256 || grown > 150 {
		t.Errorf("not refused: %v; memory grew by %d MB", asked, grown)
	}
}

// The inner ports, which every program of the machine can reach, believe no pass, and nothing without TLS.
func TestInnerPorts(t *testing.T) {
	s := serve(t)
	p := s.join("--role", "admin", "--name", "root")
	ports := s.ports()
	if len(ports) < 5 {
		t.Fatalf("the server listens on %v", ports)
	}
	tried, frontends := 0, 0
	for _, address := range ports {
		tried++
		for name, creds := range map[string]credentials.TransportCredentials{
			"a pass": credentials.NewTLS(p.TLS.Clone()), "plaintext": insecure.NewCredentials()} {
			c, err := grpc.NewClient(address, grpc.WithTransportCredentials(creds))
			if err != nil {
				t.Fatal(err)
			}
			err = invoke(t.Context(), c, service+"GetSystemInfo", &workflowservice.GetSystemInfoRequest{},
				answerOf(t, "GetSystemInfo"))
			if err == nil && name == "a pass" {
				if frontends++; address != s.address { // such as the frontend behind it
					t.Errorf("%s answers a pass", address)
				}
			} else if status.Code(err) != codes.Unavailable {
				t.Errorf("%s with %s: %v", address, name, err)
			}
			_ = c.Close()
		}
	}
	if frontends != 1 {
		t.Errorf("%d of %d ports answer an administrator's pass", frontends, tried)
	}
}

// ports are those that the server listens on, by the system's table.
func (s *server) ports() (list []string) {
	s.t.Helper()
	inodes := map[string]bool{}
	fds := fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid)
	entries, err := os.ReadDir(fds)
	if err != nil {
		s.t.Skip("needs /proc: ", err)
	}
	for _, e := range entries {
		if to, err := os.Readlink(fds + "/" + e.Name()); err == nil {
			inodes[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
		}
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		table, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && inodes[f[9]] {
				_, hex, _ := strings.Cut(f[1], ":")
				port, _ := strconv.ParseUint(hex, 16, 16)
				list = append(list, fmt.Sprintf("127.0.0.1:%d", port))
			}
		}
	}
	return list
}
