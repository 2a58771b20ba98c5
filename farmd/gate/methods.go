package gate

import (
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"vksplat/farm/flow"
	"vksplat/farm/pass"
	"vksplat/farm/spec"
)

// servicePrefix begins the names of the methods of the one service that is open. Operator, admin, health and Nexus
// services are not.
const servicePrefix = "/temporal.api.workflowservice.v1.WorkflowService/"

// Sizes of requests in bytes. Documents are in the store: what passes here is keys, progress and errors.
const (
	maxStart  = 32 << 10
	maxReport = 64 << 10
)

// MaxOpenJobs is how many jobs of an owner may be unfinished.
const MaxOpenJobs = 1000

// queuePrefix begins the queues of workers, as in pool/default/gpu.
const queuePrefix = "pool/"

// rules has an entry for every method that somebody may call.
var rules = map[string]rule{
	// What the SDK asks when it connects, and the page.
	"GetSystemInfo":     {roles: "vswa"},
	"GetClusterInfo":    {roles: "vswa"},
	"DescribeNamespace": {roles: "vswa", check: (*call).ownNamespace},

	// Who sees jobs sees those of everybody.
	"CountWorkflowExecutions": {roles: "vsa"},
	"DescribeTaskQueue": {roles: "vswa", check: (*call).look, fields: []string{
		"task_queue", "task_queue_type", "api_mode", "report_stats", "report_pollers", "report_config",
		"include_task_queue_status"}},
	"DescribeWorkflowExecution":          {roles: "vsa"},
	"GetSearchAttributes":                {roles: "vsa"},
	"GetWorkflowExecutionHistory":        {roles: "vsa"},
	"GetWorkflowExecutionHistoryReverse": {roles: "vsa"},
	"ListClosedWorkflowExecutions":       {roles: "vsa"},
	"ListNamespaces":                     {roles: "vsa"},
	"ListOpenWorkflowExecutions":         {roles: "vsa"},
	"ListWorkflowExecutions":             {roles: "vsa"},
	"QueryWorkflow": {roles: "vsa", check: (*call).query, fields: []string{"execution", "query",
		"query_reject_condition"}},

	// Jobs, by their owner.
	"StartWorkflowExecution": {roles: "sa", size: maxStart, check: (*call).start, fields: []string{"workflow_id",
		"workflow_type", "task_queue", "input", "request_id", "workflow_id_reuse_policy",
		"workflow_id_conflict_policy",
		"workflow_execution_timeout", "workflow_run_timeout", "workflow_task_timeout", "memo", "header",
		"user_metadata", "priority"}},
	"SignalWorkflowExecution": {roles: "sa", size: maxStart, check: (*call).ownJob, fields: []string{
		"workflow_execution", "signal_name", "input", "request_id", "header"}},
	"RequestCancelWorkflowExecution": {roles: "sa", check: (*call).ownJob, fields: []string{
		"workflow_execution", "request_id", "first_execution_run_id", "reason"}},
	"TerminateWorkflowExecution": {roles: "sa", check: (*call).ownJob, fields: []string{
		"workflow_execution", "reason", "details", "first_execution_run_id"}},

	// Tasks, by workers of their pool.
	"PollActivityTaskQueue": {roles: "w", check: (*call).poll, fields: []string{
		"task_queue", "poller_group_id", "worker_instance_key"}, dropped: append([]string{
		"task_queue_metadata", "worker_control_task_queue", "worker_version_capabilities"}, versions...)},
	"RecordActivityTaskHeartbeat": {roles: "w", size: maxReport, check: (*call).ownTask, fields: []string{
		"task_token", "details", "resource_id"}},
	"RespondActivityTaskCompleted": {roles: "w", size: maxReport, check: (*call).ownTask, fields: []string{
		"task_token", "result", "resource_id"}, dropped: stamps},
	"RespondActivityTaskFailed": {roles: "w", size: maxReport, check: (*call).ownTask, fields: []string{
		"task_token", "failure", "last_heartbeat_details", "resource_id"}, dropped: stamps},
	"RespondActivityTaskCanceled": {roles: "w", size: maxReport, check: (*call).ownTask, fields: []string{
		"task_token", "details", "resource_id"}, dropped: stamps},
}

// Fields of workers' versions: Temporal would start workflows for them.
var (
	versions = []string{"deployment_options"}
	stamps   = append([]string{"worker_version", "deployment"}, versions...)
)

// ownNamespace refuses to describe a namespace by its id, which may be of another.
func (c *call) ownNamespace() error {
	if c.req.(*workflowservice.DescribeNamespaceRequest).GetId() != "" {
		return refuse("a namespace is described by its name")
	}
	return nil
}

// start allows jobs under the caller's own name.
func (c *call) start() error {
	req := c.req.(*workflowservice.StartWorkflowExecutionRequest)
	owner, job, _ := strings.Cut(req.GetWorkflowId(), "/")
	switch {
	case owner != c.who.Owner || !pass.IsName(job):
		return refuse("jobs of %s have ids like %s/NAME", c.who.Owner, c.who.Owner)
	case req.GetWorkflowType().GetName() != c.gate.FlowType:
		return refuse("only workflows of type %s can be started", c.gate.FlowType)
	case req.GetTaskQueue().GetName() != c.gate.FlowQueue || !isNormal(req.GetTaskQueue()):
		return refuse("workflows run on the queue %s", c.gate.FlowQueue)
	case req.GetPriority().GetFairnessWeight() != 0 && req.GetPriority().GetFairnessWeight() != 1:
		return refuse("every owner has the same weight")
	case req.GetPriority().GetFairnessKey() != "" && req.GetPriority().GetFairnessKey() != c.who.Owner:
		return refuse("jobs of %s count as those of %s", c.who.Owner, c.who.Owner)
	}
	var in flow.JobInput
	if err := c.read(req.GetInput(), &in); err != nil {
		return err
	}
	if err := c.hasPool(in.Pool); err != nil {
		return err
	}
	if err := c.memo(req.GetMemo()); err != nil {
		return err
	}
	n, err := c.gate.OpenJobs(c.ctx, owner)
	if err != nil {
		return err
	}
	if n >= MaxOpenJobs {
		return serviceerror.NewResourceExhausted(enumspb.RESOURCE_EXHAUSTED_CAUSE_CONCURRENT_LIMIT,
			owner+" has too many unfinished jobs")
	}
	return nil
}

// memo bounds what lists show to everybody.
func (c *call) memo(m *commonpb.Memo) error {
	var job struct {
		Tasks int `json:"tasks"`
	}
	for key, payload := range m.GetFields() {
		err := converter.GetDefaultDataConverter().FromPayload(payload, &job)
		if key != flow.MemoKey || err != nil || job.Tasks < 0 || job.Tasks > spec.MaxTasks {
			return refuse("a job's memo says how many tasks it has, at most %d", spec.MaxTasks)
		}
	}
	return nil
}

// ownJob allows what steers a job to its owner, and to administrators. Parts of jobs, whose ids are longer, are
// steered by their jobs alone.
func (c *call) ownJob() error {
	var id string
	var change flow.Change
	switch req := c.req.(type) {
	case *workflowservice.SignalWorkflowExecutionRequest:
		id = req.GetWorkflowExecution().GetWorkflowId()
		if req.GetSignalName() != flow.SetSignal {
			return refuse("jobs take the signal %s", flow.SetSignal)
		}
		if err := c.read(req.GetInput(), &change); err != nil {
			return err
		}
	case *workflowservice.RequestCancelWorkflowExecutionRequest:
		id = req.GetWorkflowExecution().GetWorkflowId()
	case *workflowservice.TerminateWorkflowExecutionRequest:
		id = req.GetWorkflowExecution().GetWorkflowId()
	}
	owner, job, _ := strings.Cut(id, "/")
	if !pass.IsName(owner) || !pass.IsName(job) || owner != c.who.Owner && c.who.Role != pass.Admin {
		return refuse("%s may control jobs of %s", c.who.Name, c.who.Owner)
	}
	if change.Pool != nil {
		return c.hasPool(*change.Pool)
	}
	return nil
}

// read reads what a workflow will read, as it does.
func (c *call) read(from *commonpb.Payloads, into any) error {
	if len(from.GetPayloads()) == 0 {
		return nil
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(from, into); err != nil {
		return serviceerror.NewInvalidArgument("the input cannot be read: " + err.Error())
	}
	return nil
}

// hasPool refuses to move a job to a pool that no machine has or is to have.
func (c *call) hasPool(name string) error {
	if name != "" && !c.gate.HasPool(name) {
		return serviceerror.NewInvalidArgumentf("no machine has the pool %.70q: vksplat-farmd token --pools makes a "+
			"pass for one", name)
	}
	return nil
}

// query allows to ask how far a job is. The other queries, which the SDK adds, tell of the server's insides.
func (c *call) query() error {
	if kind := c.req.(*workflowservice.QueryWorkflowRequest).GetQuery().GetQueryType(); kind != flow.StateQuery {
		return refuse("jobs answer the query %s", flow.StateQuery)
	}
	return nil
}

// poll allows the queues of the worker's pools.
func (c *call) poll() error {
	return c.ownQueue(c.req.(*workflowservice.PollActivityTaskQueueRequest).GetTaskQueue())
}

// look allows workers to see how many tasks wait in their queues, and people to see the queues that workers or jobs
// use.
func (c *call) look() error {
	req := c.req.(*workflowservice.DescribeTaskQueueRequest)
	q := req.GetTaskQueue()
	switch {
	case c.who.Role != pass.Worker && isNormal(q) && (q.GetName() == c.gate.FlowQueue ||
		c.gate.names.has(q.GetName())):
		return nil
	case c.who.Role != pass.Worker:
		return refuse("no machine asks for the queue %.100q", q.GetName())
	case req.GetTaskQueueType() != enumspb.TASK_QUEUE_TYPE_ACTIVITY:
		return refuse("workers' queues hold activities only")
	}
	return c.ownQueue(q)
}

// ownQueue refuses queues that are not of the worker's pools, or of no class of tasks. Those of devices, whose names
// the server cannot check, count.
func (c *call) ownQueue(q *taskqueuepb.TaskQueue) error {
	rest, is := strings.CutPrefix(q.GetName(), queuePrefix)
	pool, class, _ := strings.Cut(rest, "/")
	known, pin := flow.IsClass(class)
	if !is || !known || !slices.Contains(c.who.Pools, pool) || !isNormal(q) {
		return refuse("%s takes tasks of %s%s", c.who.Name, queuePrefix, strings.Join(c.who.Pools, ", "+queuePrefix))
	}
	return c.gate.names.use(c.who.Name+" in the pool "+pool, q.GetName(), pin)
}

// isNormal refuses sticky queues, which belong to workers that run workflows.
func isNormal(q *taskqueuepb.TaskQueue) bool {
	return q.GetKind() == enumspb.TASK_QUEUE_KIND_NORMAL || q.GetKind() == enumspb.TASK_QUEUE_KIND_UNSPECIFIED
}

// ownTask allows reports on tasks that this pass was given.
func (c *call) ownTask() error {
	token := c.req.(interface{ GetTaskToken() []byte }).GetTaskToken()
	if !c.gate.sealed(token, c.who) {
		return refuse("the task is not one of %s", c.who.Name)
	}
	return nil
}
