package spec

// Every key of a document stands in one of the tables below or in that of its kind, with its type and bounds. Parser
// and JSON Schema (job.schema.json) are both made from them.

// fieldType is the type of a value.
type fieldType int

const (
	typeInt   fieldType = iota
	typeFloat           // a whole number is one, too
	typeBool
	typeText     // by words or a pattern
	typeName     // of jobs and tasks, see badName
	typeWord     // of roots and pools, see wordForm
	typeSpan     // a time as in 10m
	typeInput    // a key below the root of inputs, or @id: the output of a task
	typeInputs   // a list of these
	typeKey      // a key below another
	typeTask     // a list of ids
	typeInts     // a list of whole numbers
	typeFloats   // a list of numbers
	typeFrames   // A, A-B or A-BxN
	typeCamera   // a trajectory's word, or a key
	typeSettings // a table of train's settings
	typeMatrix
	typeTable
	typeList // of tables
)

// field is a key.
type field struct {
	key      string
	kind     fieldType
	help     string
	required bool
	min, max float64 // of numbers, and of the elements of lists; both 0: any
	count    int     // of a list's elements, exactly; 0: 1 to most
	most     int     // of a list's elements at most
	words    []string
	fields   []field // of a table
	flag     string  // of the command that gets the value, "" where the planner uses it
}

// to says which flag gets the value.
func (f field) to(flag string) field { f.flag = flag; return f }

func (f field) need() field { f.required = true; return f }

// named gives an option another key.
func (f field) named(key string) field { f.key = key; return f }

func (f field) times(n int) field { f.count = n; return f }

func number(key string, kind fieldType, lo, hi float64, help string) field {
	return field{key: key, kind: kind, min: lo, max: hi, help: help}
}

func oneOf(key, help string, words ...string) field {
	return field{key: key, kind: typeText, words: words, help: help}
}

func plain(key string, kind fieldType, help string) field {
	return field{key: key, kind: kind, help: help}
}

func table(key, help string, fields []field) field {
	return field{key: key, kind: typeTable, fields: fields, help: help}
}

// Bounds of numbers.
const (
	maxFrame    = 999_999_999
	maxInspect  = 16   // frames of `first`
	maxEntries  = 1000 // of lists of names
	maxAttempts = 1000
	maxBlocks   = 4096
	maxText     = 200 // characters
)

var priorities = []string{"high", "normal", "low"}

var retryFields = []field{
	number("max_attempts", typeInt, 1, maxAttempts, "attempts until the task has failed"),
	plain("backoff", typeSpan, "pause before the second attempt; it doubles from then on"),
	plain("backoff_max", typeSpan, "longest pause"),
	plain("keep_going", typeBool, "run other tasks after one has failed"),
}

var limitFields = []field{
	plain("lease", typeSpan, "of farms with a server: without effect"),
	plain("task_timeout", typeSpan, "longest attempt"),
	plain("stall_timeout", typeSpan, "longest time without progress"),
	plain("checkpoint_every", typeSpan, "longest time between uploads of checkpoints"),
	number("vram_min_mb", typeInt, 0, 1<<24, "memory that the device must have"),
	number("disk_min_gb", typeInt, 0, 1<<20, "room that the work folder must have"),
}

var pinFields = []field{
	{key: "device", kind: typeText, help: "name or UUID of the device"},
	{key: "driver", kind: typeText, help: "version of the driver"},
}

var storeFields = []field{
	plain("inputs", typeWord, "root that input keys are relative to"),
	plain("outputs", typeWord, "root that results go to"),
}

// commonFields are those of every task, and jobFields of the document.
var commonFields = []field{
	{key: "kind", kind: typeText, words: writtenKinds(), required: true, help: "what the task does"},
	plain("id", typeName, "name of the task and of its folder"),
	{key: "needs", kind: typeTask, most: maxEntries,
		help: "tasks that must be done before, beside those that inputs name"},
	plain("matrix", typeMatrix, "keys with lists of values: a task for every combination"),
	plain("pool", typeWord, "machines that may run it, for schedulers and farms"),
	oneOf("priority", "priority of the tasks", priorities...),
	table("retry", "what to do after a failure", retryFields),
	table("limits", "limits of an attempt", limitFields),
	table("pin", "devices that may run it", pinFields),
}

var jobFields = []field{
	number("version", typeInt, version, version, "version of this document's format").need(),
	plain("name", typeName, "name of the job and of its folder").need(),
	oneOf("priority", "priority of the tasks", priorities...),
	plain("pool", typeWord, "machines that may run its tasks, for schedulers and farms"),
	table("retry", "what to do after a failure", retryFields),
	table("limits", "limits of an attempt", limitFields),
	table("pin", "devices that may run its tasks", pinFields),
	table("store", "roots of keys", storeFields),
	{key: "task", kind: typeList, most: maxWritten, required: true, help: "the tasks"},
}
