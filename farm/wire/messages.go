package wire

import (
	"encoding/json"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
)

// Request is the message of a call. Conn fills in Namespace and Identity, where a request has them.
type Request interface {
	proto.Message
	method() string
}

// Values of enumerations.
const (
	kindNormal        = 1 // of a queue
	typeActivity      = 2 // likewise, of its tasks
	reuseDuplicate    = 1 // a workflow that has ended may be started again
	conflictFail      = 1 // one that runs may not
	filterClose       = 2 // of a history, its last event alone
	ActivityScheduled = 1 // no worker has taken it

	StatusRunning   = 1
	StatusCompleted = 2
	StatusFailed    = 3
	StatusCanceled  = 4
	StatusPaused    = 8
)

// QueueOf names a queue that all workers share.
func QueueOf(name string) *Queue { return &Queue{Name: name, Kind: kindNormal} }

// Time is a moment as a time; of nil it is zero.
func (m *Moment) Time() time.Time {
	if m == nil {
		return time.Time{}
	}
	return time.Unix(int64(m.Seconds), int64(m.Nanos)).UTC()
}

// Span is a moment as a duration; of nil it is zero.
func (m *Moment) Span() time.Duration {
	if m == nil {
		return 0
	}
	return time.Duration(m.Seconds)*time.Second + time.Duration(m.Nanos)
}

// SpanOf is a span of time; nil if it is zero.
func SpanOf(d time.Duration) *Moment {
	if d == 0 {
		return nil
	}
	return &Moment{Seconds: int64(d / time.Second), Nanos: int32(d % time.Second)}
}

// Encoding of payloads, as the SDK that runs the workflows writes and reads them.
const (
	encodingKey = "encoding"
	plainJSON   = "json/plain"
)

// PayloadOf carries a value, which JSON can say.
func PayloadOf(value any) *Payload {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // it is one of ours
	}
	return &Payload{Metadata: map[string][]byte{encodingKey: []byte(plainJSON)}, Data: data}
}

// PayloadsOf carry one value.
func PayloadsOf(value any) *Payloads { return &Payloads{List: []*Payload{PayloadOf(value)}} }

var errNoValue = errors.New("it was not written by vksplat")

// Read reads a value that JSON says.
func (p *Payload) Read(to any) error {
	if p == nil || string(p.Metadata[encodingKey]) != plainJSON {
		return errNoValue
	}
	return json.Unmarshal(p.Data, to)
}

// Read reads the first value.
func (p *Payloads) Read(to any) error {
	if p == nil || len(p.List) == 0 {
		return errNoValue
	}
	return p.List[0].Read(to)
}

// Explain says why something has failed, and what helps: in the words of who has failed, else in the server's.
func (f *Failure) Explain() (text, hint string) {
	if f == nil {
		return "", ""
	}
	for own := f; own != nil; own = own.Cause {
		if own.Own != nil {
			_ = own.Own.Details.Read(&hint) // there may be none
			return own.Message, hint
		}
	}
	return f.Message, ""
}

// StartAnew has a Start be of a workflow that may have ended, but does not run.
func StartAnew(s *Start) *Start {
	s.Reuse, s.Conflict = reuseDuplicate, conflictFail
	return s
}

// End asks for the last event of a workflow that has ended.
func End(of *Execution) *History { return &History{Of: of, Filter: filterClose} }

// Backlog asks how many activities a queue has, by their urgency.
func Backlog(queue string) *DescribeQueue {
	return &DescribeQueue{Queue: &Queue{Name: queue}, Type: typeActivity, Stats: true}
}

func (*DescribeNamespace) method() string { return "DescribeNamespace" }
func (*Start) method() string             { return "StartWorkflowExecution" }
func (*Describe) method() string          { return "DescribeWorkflowExecution" }
func (*Signal) method() string            { return "SignalWorkflowExecution" }
func (*Cancel) method() string            { return "RequestCancelWorkflowExecution" }
func (*Query) method() string             { return "QueryWorkflow" }
func (*List) method() string              { return "ListWorkflowExecutions" }
func (*History) method() string           { return "GetWorkflowExecutionHistory" }
func (*DescribeQueue) method() string     { return "DescribeTaskQueue" }
func (*Poll) method() string              { return "PollActivityTaskQueue" }
func (*Heartbeat) method() string         { return "RecordActivityTaskHeartbeat" }
func (*Completed) method() string         { return "RespondActivityTaskCompleted" }
func (*Failed) method() string            { return "RespondActivityTaskFailed" }
func (*Stopped) method() string           { return "RespondActivityTaskCanceled" }
