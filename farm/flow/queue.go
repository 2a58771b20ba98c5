package flow

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vksplat/farm/spec"
	"vksplat/farm/task"
)

// Namespace of Temporal that jobs are in, unless a cluster's users say otherwise.
const Namespace = "vksplat"

// FlowQueue is the queue of workflows and of the activities that they call themselves. Only the server polls it.
const FlowQueue = "flow"

// JobType is the type of the workflow of a job, TaskType that of the activity of a task.
const (
	JobType  = "job"
	TaskType = "task"
)

// MemoKey is the entry of a job's memo, which lists show.
const MemoKey = "job"

// JobID is the id of a job's workflow. The server lets only the owner start or change what is below its name. Of
// names with other letters than ids may have, the id has some, and a hash.
func JobID(owner, name string) string {
	if wordForm.MatchString(name) {
		return owner + "/" + name
	}
	slug := strings.Trim(otherSigns.ReplaceAllString(strings.ToLower(name), "-"), "-")
	sum := sha256.Sum256([]byte(name))
	return owner + "/" + strings.TrimLeft(slug[:min(len(slug), 40)]+"-"+hex.EncodeToString(sum[:4]), "-")
}

var (
	wordForm   = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)
	otherSigns = regexp.MustCompile(`[^a-z0-9]`)
)

// IsPool says whether a text may name a pool.
func IsPool(s string) bool { return wordForm.MatchString(s) }

// OwnerOf is whose job a workflow is, by its id.
func OwnerOf(id string) string {
	owner, _, _ := strings.Cut(id, "/")
	return owner
}

// ChunkID is the id of a chunk's workflow.
func ChunkID(job string, chunk int) string { return job + "/" + strconv.Itoa(chunk) }

// ActivityID is the id of the n-th activity of a task.
func ActivityID(index, n int) string { return path.Join(strconv.Itoa(index), strconv.Itoa(n)) }

// IndexOf is the index of the task that an activity is of, by its id.
func IndexOf(activityID string) (int, error) {
	index, _, _ := strings.Cut(activityID, "/")
	return strconv.Atoi(index)
}

// Queue is the queue of tasks of a pool and a class.
func Queue(pool, class string) string { return "pool/" + pool + "/" + class }

// QueueText says for people what tasks of a queue wait for.
func QueueText(queue string) string {
	pool, class, _ := strings.Cut(strings.TrimPrefix(queue, "pool/"), "/")
	text := "a machine of the pool " + pool
	if gb, is := strings.CutPrefix(class, memoryPrefix); is {
		return text + " with a device of " + gb + " GB"
	} else if pin, is := strings.CutPrefix(class, pinPrefix); is {
		return text + " with the device " + pin
	} else if kind, is := strings.CutPrefix(class, kindPrefix); is {
		return text + " for tasks of kind " + kind
	}
	return text
}

// Classes begin with these, but for classGPU.
const (
	kindPrefix   = "cpu/"
	memoryPrefix = "vram-"
	pinPrefix    = "device/"
)

// classGPU is the class of tasks that any device can do.
const classGPU = "gpu"

// classOfKind is that of tasks without a device: machines lack programs that some need, and older workers lack kinds.
func classOfKind(kind string) string { return kindPrefix + kind }

// memoryClasses are sizes of devices that are sold, in GB. A device of the class has at least so many thousand MB:
// those of 24 GB report 24,564, and some hold a part back.
var memoryClasses = []int{1, 2, 3, 4, 6, 8, 11, 12, 15, 16, 22, 24, 32, 44, 48, 80, 96, 140, 180, 280}

func memoryClass(gb int) string { return memoryPrefix + strconv.Itoa(gb) }

// ClassOf is the class of a task.
func ClassOf(t *spec.Task) string {
	switch {
	case !t.Kind.NeedsDevice:
		return classOfKind(t.Kind.Name)
	case t.Pin != spec.Pin{}:
		return pinClass(plainPin(t.Pin.Device), t.Pin.Driver)
	case t.Limits.VRAMMinMB == 0:
		return classGPU
	}
	for _, gb := range memoryClasses {
		if t.Limits.VRAMMinMB <= gb*1000 {
			return memoryClass(gb)
		}
	}
	return memoryClass(memoryClasses[len(memoryClasses)-1]) // whoever is too small gives the task back
}

// IsClass says whether tasks may be of a class, and whether it names a device.
func IsClass(class string) (is, pin bool) {
	if names, pin := strings.CutPrefix(class, pinPrefix); pin {
		return len(class) <= maxPin && pinForm.MatchString(names), true
	}
	gb, err := strconv.Atoi(strings.TrimPrefix(class, memoryPrefix))
	return class == classGPU || slices.Contains(ClassesWithout(nil), class) ||
		err == nil && class == memoryClass(gb) && slices.Contains(memoryClasses, gb), false
}

// maxPin bounds the class of a device, in bytes: a queue's name has 1000 at most.
const maxPin = 900

var pinForm = regexp.MustCompile(`^(\*|([A-Za-z0-9_-]|=[0-9A-F]{2})+)/(\*|([A-Za-z0-9_-]|=[0-9A-F]{2})+)$`)

// ClassesWithout lists the classes of tasks that need no device, but for kinds that cannot be done.
func ClassesWithout(lacks map[*spec.Kind]error) (list []string) {
	for _, k := range spec.Kinds() {
		if !k.NeedsDevice && lacks[k] == nil {
			list = append(list, classOfKind(k.Name))
		}
	}
	return list
}

// ClassesOf lists the classes of tasks that a device can do.
func ClassesOf(d *task.Device) []string {
	list := []string{classGPU}
	for _, gb := range memoryClasses {
		if d.MemoryBytes == 0 || d.MemoryBytes>>20 >= int64(gb)*1000 {
			list = append(list, memoryClass(gb))
		}
	}
	names := []string{"", plainPin(d.Name), plainPin(d.UUID), plainPin(d.PCI)}
	for i, name := range names {
		if i > 0 && name == "" {
			continue
		}
		if name != "" {
			list = append(list, pinClass(name, ""))
		}
		if d.Driver != "" {
			list = append(list, pinClass(name, d.Driver))
		}
	}
	return list
}

func pinClass(device, driver string) string {
	word := func(s string) string {
		if s == "" {
			return "*"
		}
		return spec.Escape(s)
	}
	return pinPrefix + word(device) + "/" + word(driver)
}

var (
	uuidForm = regexp.MustCompile(`^[0-9a-f]{32}$`)
	pciForm  = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)
)

// plainPin gives UUIDs and PCI addresses one form, of the several that task.Device.Is takes for the same.
func plainPin(pin string) string {
	small := strings.ToLower(pin)
	if plain := strings.ReplaceAll(strings.TrimPrefix(small, "gpu-"), "-", ""); uuidForm.MatchString(plain) {
		return plain
	}
	if pciForm.MatchString(small) {
		if len(small) > len("0000:00:00.0") {
			small = strings.TrimPrefix(small, "0000")
		}
		return small
	}
	return pin
}

// priorities of documents as Temporal's keys, of which lower ones go first.
var priorities = map[string]int{"high": 1, "normal": 3, "low": 5}

// Priorities are the words that stand for priorities.
var Priorities = []string{"high", "normal", "low"}

// PriorityKey is Temporal's key of a priority.
func PriorityKey(word string) int {
	if key := priorities[word]; key > 0 {
		return key
	}
	return priorities[spec.DefaultPriority]
}
