package queue

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// slowServer answers each request for a message when told to: with a message whose acknowledgement it sees, or with none.
type slowServer struct {
	t     *testing.T
	nc    *nats.Conn
	asked *nats.Subscription
	acks  *nats.Subscription
}

func newSlowServer(t *testing.T) (*slowServer, *puller) {
	t.Helper()
	url := startServer(t, false)
	s := &slowServer{t: t, nc: dial(t, url)}
	var err error
	if s.asked, err = s.nc.SubscribeSync("$JS.API.CONSUMER.MSG.NEXT.>"); err != nil {
		t.Fatal(err)
	}
	if s.acks, err = s.nc.SubscribeSync("ack.>"); err != nil {
		t.Fatal(err)
	}
	if err := s.nc.Flush(); err != nil {
		t.Fatal(err)
	}
	q, err := attach(dial(t, url), Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Worker{q: q}).newPuller()
	if err != nil {
		t.Fatal(err)
	}
	return s, p
}

// request waits for a request and returns what answers it with this text, or with no message where text is "".
func (s *slowServer) request() (answer func(text string)) {
	s.t.Helper()
	request, err := s.asked.NextMsg(patience)
	if err != nil {
		s.t.Fatal(err)
	}
	return func(text string) {
		s.t.Helper()
		m := &nats.Msg{Subject: request.Reply, Data: []byte(text), Reply: "ack." + text}
		if text == "" {
			m.Reply, m.Header = "", nats.Header{"Status": {"404"}}
		}
		if err := s.nc.PublishMsg(m); err != nil {
			s.t.Fatal(err)
		}
	}
}

// givesUp begins a request whose answer does not come before its caller is stopped.
func (s *slowServer) givesUp(p *puller) (answer func(text string)) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	done := make(chan *nats.Msg)
	go func() { done <- p.next(ctx, "c") }()
	answer = s.request()
	cancel()
	if msg := <-done; msg != nil {
		s.t.Fatalf("a message out of nowhere: %q", msg.Data)
	}
	return answer
}

// TestStoppedClaim stops a worker while the answer to its request is on the way: the message goes back to the others at once.
func TestStoppedClaim(t *testing.T) {
	t.Parallel()
	s, p := newSlowServer(t)
	answer := s.givesUp(p)
	closed := make(chan struct{})
	go func() { p.close(); close(closed) }()
	time.Sleep(50 * time.Millisecond) // it waits by then; if not, the answer is even earlier
	answer("1")
	ack, err := s.acks.NextMsg(patience)
	if err != nil || ack.Subject != "ack.1" || string(ack.Data) != "-NAK" {
		t.Errorf("%+v, %v", ack, err)
	}
	<-closed
}

// TestAnswerOfAnother has a request be given up: its answer is the next one's only if it is a message, and then no other is asked for.
func TestAnswerOfAnother(t *testing.T) {
	t.Parallel()
	s, p := newSlowServer(t)
	next := make(chan *nats.Msg)
	ask := func() { go func() { next <- p.next(t.Context(), "c") }() }
	want := func(text string) {
		t.Helper()
		if msg := <-next; msg == nil || string(msg.Data) != text {
			t.Fatalf("%+v, want %q", msg, text)
		}
	}
	answer := s.givesUp(p)
	ask()
	answer("1")
	want("1")
	// One that says that there is nothing is no answer to what is asked now.
	answer = s.givesUp(p)
	answer("")
	ask()
	s.request()("2")
	want("2")
	// One that never comes keeps nobody from asking.
	s.givesUp(p)
	ask()
	s.request()("3")
	want("3")
	if n, _, err := s.asked.Pending(); err != nil || n > 0 {
		t.Errorf("%d more requests, %v", n, err)
	}
	began := time.Now()
	p.close()
	if took := time.Since(began); took > answerFor/2 {
		t.Errorf("nothing is waited for during %v", took)
	}
}

// TestStopsWhileItClaims has a worker stop as its claim is on the way to the server: the task is another's at once.
func TestStopsWhileItClaims(t *testing.T) {
	s := newSteps(t, Task{Name: "a"})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	sub, err := s.q.nc.Subscribe("$KV.task.j.0", func(*nats.Msg) { stop() })
	s.must(err)
	if lease, err := s.w.Claim(ctx, Slot{}); lease != nil {
		s.must(lease.Handback(t.Context())) // the answer was faster
	} else if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.must(sub.Unsubscribe())
	if e := s.entry(0); e.State != Queued || e.Used != 0 {
		t.Errorf("%+v", e)
	}
	s.succeed("a")
}
