// Package worker does the tasks of a farm on this machine: it claims them from the queue, runs each in a child process of this program, passes on how far the
// child is, stops it when the queue says so, and says how it went.
//
// A device does one task at a time. Workers on one machine take turns with it by a lock. Tasks that need no device run beside.
package worker
