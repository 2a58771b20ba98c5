package child

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"vksplat/internal/fault"
)

// reportsVariable has TestReporter be a child that reports.
const reportsVariable = "CHILD_TEST_REPORTS"

// TestReporter is the child of TestEvents.
func TestReporter(t *testing.T) {
	how := os.Getenv(reportsVariable)
	if how == "" {
		t.Skip("it is the child of TestEvents")
	}
	Begin()
	if !Reports() || os.Getenv(eventsVariable) != "" {
		os.Exit(99)
	}
	Report(Event{Event: EventViewer, URL: "http://here"})
	Report(json.RawMessage(`{"event":"step","step":3,"total":10,"loss":null,"splats":7,"new":[1]}`))
	fmt.Println(`{"event":"error","text":"what is printed is not an event"}`)
	if how == "crash" {
		os.Exit(fault.ExitUsage)
	}
	_ = exec.Command(os.Args[0], "-test.run=^$").Start() // a program that lives on does not hold the pipe
	Report(Event{Event: EventError, Text: "no room", Hint: "make some", Kind: "data", Causes: []string{"disk-full"}})
	os.Exit(65)
}

// TestEvents has a child report by the pipe, on every system, and fail with and without an error of its own.
func TestEvents(t *testing.T) {
	for _, how := range []string{"crash", "fail"} {
		var events []Event
		err := Run(t.Context(), os.Args[0], []string{"-test.run=^TestReporter$"},
			Options{Env: []string{reportsVariable + "=" + how},
				OnEvent: func(e *Event) { events = append(events, *e) }})
		var f *Failure
		if !errors.As(err, &f) || len(events) < 2 || events[0].URL != "http://here" || events[1].Step != 3 ||
			events[1].Total != 10 || events[1].Splats != 7 {
			t.Fatalf("%s: %v, %+v", how, err, events)
		}
		if how == "crash" {
			if f.Code != fault.ExitFailure || f.Text != "" || len(f.Causes) > 0 || len(events) != 2 {
				t.Errorf("a crash: %+v, %+v", f, events)
			}
			continue
		}
		if f.Code != 65 || f.Text != "no room" || fault.Hint(err) != "make some" || !errors.Is(err, fault.ErrData) ||
			errors.Is(err, fault.ErrTryAgain) || len(f.Causes) < 2 {
			t.Errorf("%v, %+v", err, f)
		}
	}
	if err := Run(t.Context(), "no-such-program", nil, Options{OnEvent: func(*Event) {}}); err == nil {
		t.Error("a program that is not there runs")
	}
}

// TestAsk decodes what a program prints, or says that it cannot.
func TestAsk(t *testing.T) {
	var v []int
	if err := Ask(t.Context(), os.Args[0], []string{"-test.run=^$"}, Options{}, &v); err == nil {
		t.Error("PASS is not JSON")
	}
}
