package wire

import (
	"encoding/json"
	"errors"
	"time"
)

// Request is what a call sends. Conn fills in Namespace and Identity, where a request has them.
type Request interface{ method() string }

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

// What messages are made of.
type (
	// Kind is the type of a workflow, activity or query.
	Kind struct {
		Name string `pb:"1"`
	}
	// Queue is a queue of tasks.
	Queue struct {
		Name string `pb:"1"`
		Kind int    `pb:"2"`
	}
	// Execution is a workflow; without a run, its last.
	Execution struct {
		Workflow string `pb:"1"`
		Run      string `pb:"2"`
	}
	// Memo is what a list says of a workflow.
	Memo struct {
		Fields map[string]*Payload `pb:"1"`
	}
	// Payloads carry values.
	Payloads struct {
		List []*Payload `pb:"1"`
	}
	// Payload carries a value.
	Payload struct {
		Metadata map[string][]byte `pb:"1"`
		Data     []byte            `pb:"2"`
	}
	// Moment is a time, or a span of time.
	Moment struct {
		Seconds int `pb:"1"`
		Nanos   int `pb:"2"`
	}
	// Failure is why something has failed.
	Failure struct {
		Message string              `pb:"1"`
		Source  string              `pb:"2"` // the program that says it
		Cause   *Failure            `pb:"4"`
		Own     *ApplicationFailure `pb:"5"` // of what a worker or workflow has said itself
		Timeout *struct{}           `pb:"6"` // nothing was heard any more
	}
	// ApplicationFailure is what a worker or workflow says of its failure.
	ApplicationFailure struct {
		Type    string    `pb:"1"`
		Final   bool      `pb:"2"` // no other attempt follows
		Details *Payloads `pb:"3"`
		Delay   *Moment   `pb:"4"` // until the next attempt
	}
)

// QueueOf names a queue that all workers share.
func QueueOf(name string) *Queue { return &Queue{name, kindNormal} }

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
	return &Moment{int(d / time.Second), int(d % time.Second)}
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
	return &Payload{map[string][]byte{encodingKey: []byte(plainJSON)}, data}
}

// PayloadsOf carry one value.
func PayloadsOf(value any) *Payloads { return &Payloads{[]*Payload{PayloadOf(value)}} }

var errNoValue = errors.New("no value of ours is there")

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

// Calls of clients, and their answers.
type (
	// DescribeNamespace asks whether the server has the namespace.
	DescribeNamespace struct {
		Namespace string `pb:"1"`
	}
	// Start starts a workflow.
	Start struct {
		Namespace string    `pb:"1"`
		Workflow  string    `pb:"2"`
		Type      *Kind     `pb:"3"`
		Queue     *Queue    `pb:"4"`
		Input     *Payloads `pb:"5"`
		Identity  string    `pb:"9"`
		Request   string    `pb:"10"` // a call that is made again has the same
		Reuse     int       `pb:"11"`
		Memo      *Memo     `pb:"14"`
		Conflict  int       `pb:"22"`
	}
	// Describe asks what is known of a workflow.
	Describe struct {
		Namespace string     `pb:"1"`
		Of        *Execution `pb:"2"`
	}
	Description struct {
		Info       *Info      `pb:"2"`
		Activities []*Pending `pb:"3"`
	}
	// Info is what a list says of a workflow.
	Info struct {
		Execution *Execution `pb:"1"`
		Start     *Moment    `pb:"3"`
		Close     *Moment    `pb:"4"`
		Status    int        `pb:"5"`
		Memo      *Memo      `pb:"10"`
	}
	// Pending is an activity that has not ended.
	Pending struct {
		ID      string    `pb:"1"`
		Type    *Kind     `pb:"2"`
		State   int       `pb:"3"`
		Beat    *Payloads `pb:"4"` // what its last heartbeat said
		Started *Moment   `pb:"6"`
		Failure *Failure  `pb:"11"` // of the last attempt
		Options *struct {
			Queue *Queue `pb:"1"`
		} `pb:"24"`
	}
	Signal struct {
		Namespace string     `pb:"1"`
		Of        *Execution `pb:"2"`
		Name      string     `pb:"3"`
		Input     *Payloads  `pb:"4"`
		Identity  string     `pb:"5"`
		Request   string     `pb:"6"`
	}
	Cancel struct {
		Namespace string     `pb:"1"`
		Of        *Execution `pb:"2"`
		Identity  string     `pb:"3"`
		Request   string     `pb:"4"`
	}
	Query struct {
		Namespace string     `pb:"1"`
		Of        *Execution `pb:"2"`
		Query     *Kind      `pb:"3"`
	}
	Queried struct {
		Result *Payloads `pb:"1"`
	}
	List struct {
		Namespace string `pb:"1"`
		Size      int    `pb:"2"` // of a page
		Next      []byte `pb:"3"`
		Query     string `pb:"4"`
	}
	Listed struct {
		Workflows []*Info `pb:"1"`
		Next      []byte  `pb:"2"` // for the next page
	}
	// History asks for the events of a workflow.
	History struct {
		Namespace string     `pb:"1"`
		Of        *Execution `pb:"2"`
		Filter    int        `pb:"6"`
	}
	Events struct {
		History *struct {
			Events []*struct {
				Failed *struct {
					Failure *Failure `pb:"1"`
				} `pb:"8"`
			} `pb:"1"`
		} `pb:"1"`
	}
)

// StartAnew is Start of a workflow that may have ended, but does not run.
func StartAnew(s Start) *Start {
	s.Reuse, s.Conflict = reuseDuplicate, conflictFail
	return &s
}

// End asks for the last event of a workflow that has ended.
func End(of *Execution) *History { return &History{Of: of, Filter: filterClose} }

// Calls of workers, and their answers.
type (
	// DescribeQueue asks how many activities a queue has, by their urgency.
	DescribeQueue struct {
		Namespace string `pb:"1"`
		Queue     *Queue `pb:"2"`
		Type      int    `pb:"3"`
		Stats     bool   `pb:"8"`
	}
	Backlogged struct {
		ByPriority map[int]*struct {
			Count int `pb:"1"`
		} `pb:"8"`
	}
	// Poll waits for an activity.
	Poll struct {
		Namespace string `pb:"1"`
		Queue     *Queue `pb:"2"`
		Identity  string `pb:"3"`
	}
	// Given is an activity; without a token there is none.
	Given struct {
		Token     []byte    `pb:"1"`
		Type      *Kind     `pb:"5"`
		Input     *Payloads `pb:"8"`
		Beat      *Payloads `pb:"9"` // what the last heartbeat of an earlier attempt said
		Heartbeat *Moment   `pb:"16"`
	}
	// Heartbeat says that an activity runs.
	Heartbeat struct {
		Token     []byte    `pb:"1"`
		Details   *Payloads `pb:"2"`
		Identity  string    `pb:"3"`
		Namespace string    `pb:"4"`
	}
	Heard struct {
		Canceled bool `pb:"1"`
		Paused   bool `pb:"2"`
		Reset    bool `pb:"3"`
	}
	// Completed says that an activity is done.
	Completed struct {
		Token     []byte `pb:"1"`
		Identity  string `pb:"3"`
		Namespace string `pb:"4"`
	}
	// Failed says that an activity has failed.
	Failed struct {
		Token     []byte    `pb:"1"`
		Failure   *Failure  `pb:"2"`
		Identity  string    `pb:"3"`
		Namespace string    `pb:"4"`
		Beat      *Payloads `pb:"5"`
	}
	// Stopped says that an activity has ended because that was wanted.
	Stopped struct {
		Token     []byte    `pb:"1"`
		Details   *Payloads `pb:"2"`
		Identity  string    `pb:"3"`
		Namespace string    `pb:"4"`
	}
)

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
