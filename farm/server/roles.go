package server

import (
	"maps"
	"slices"
)

// Role is what the holder of a token may do.
type Role string

// The roles. Submitters and workers write the state of tasks, so they are trusted with it: what keeps them apart is that a submitter cannot take tasks, a
// worker cannot submit any, and neither can change orders to nodes, limits or streams. Workers are trusted with each other, too: each may write the record of every
// node, and whoever writes that of another ends that worker (ErrNameTaken), and write the state, log and preview of every task.
const (
	View   Role = "view"   // look at everything
	Submit Role = "submit" // and submit, cancel, retry, pause jobs
	Work   Role = "worker" // look, take tasks and say how they went
	Admin  Role = "admin"  // everything
)

// rights are the subjects on which a role may publish and listen, beside its answers.
type rights struct {
	publish   []string
	subscribe []string
}

// reads are the questions that every role may ask. Nobody but an administrator makes consumers: one that delivers to a subject of its maker's choice would
// write there with the server's rights.
var reads = []string{"$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.>"}

// hears is what every role may listen to.
var hears = []string{"ev.>", "prog.>", "log.>"}

var roles = map[Role]rights{
	View:   {reads, hears},
	Submit: {slices.Concat(reads, []string{"$KV.job.>", "$KV.task.>"}), hears},
	Work: {
		slices.Concat(reads, []string{"$JS.API.CONSUMER.MSG.NEXT.JOBS.*", "$JS.ACK.JOBS.>", "$KV.task.>", "$KV.node.*", "$KV.preview.*.*", "log.*.*", "prog.*.*"}),
		slices.Concat(hears, []string{"wake.*"}),
	},
	Admin: {[]string{">"}, []string{">"}},
}

// Roles lists them by name.
func Roles() []Role { return slices.Sorted(maps.Keys(roles)) }
