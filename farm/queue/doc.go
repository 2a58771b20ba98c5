// Package queue keeps the state of a render farm in NATS JetStream: jobs, their tasks, who works on what. A task is opaque here: a name, the tasks it
// needs, a pool, how often it may be tried. What it does is in the job's document, which the queue stores and hands to workers unread.
//
// # Where things are
//
//	KV job      <job>             Head: owner, priority, paused, canceled, ended
//	            <job>.doc         the document; its revision is the job's age
//	            <job>.plan.<n>    the tasks, compressed, in parts
//	KV task     <job>.<index>     Entry: attempt, generation, owner, last step, error. Absent until somebody claims the task
//	KV node     <node>            Node: written by its worker every ten seconds, gone after thirty
//	KV ctl      farm, limits, node.<node>; untold.<job> until somebody has been told that it ended
//	KV lead     reconciler        who reconciles, gone after ten seconds
//	stream JOBS jobs.<priority>.<pool>.<job>.<index>    what may run now, at most one message a task
//	stream LOGS log.<job>.<index>
//
// # How a task moves
//
//	blocked --needs done--> queued --claim--> running --> verifying --> succeeded
//	running --Retry--> retry_wait --> queued        running --owner silent--> running elsewhere, attempt+1
//	running|queued|blocked --Cancel--> canceling --worker stopped or silent--> canceled
//	running --Fail | attempts used--> failed         blocked --a needed task failed or was canceled--> skipped
//	any end --Retry of the queue--> queued, generation+1
//
// Every write to an Entry is a compare-and-set on its revision, so that a worker that was given up and comes back cannot change anything: its next write
// fails, and its lease ends with ErrLost. Blocked, queued and skipped are not stored: they follow from the entries of the needed tasks and from the Head
// (see board). So a job of 100,000 tasks is submitted by a few writes, and either whole or not at all; so is it canceled.
//
// The stream JOBS holds only what workers may take next (see reconciler): a few hundred tasks of each priority and pool, the oldest job's first, within
// the limits of users and pools. One reconciler does that, elected by a key that expires; a second one would at most delay a call by some seconds. A lost
// message is published anew, that of a task that may no longer be claimed is removed, so that no late answer to it hits the next one, and a message too many is
// dropped by who claims it: entries decide, messages only call.
//
// Time is the server's, from the stamps of entries, or a difference of the local monotonic clock. No two machines' clocks are compared.
package queue
