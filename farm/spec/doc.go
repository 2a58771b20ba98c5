// Package spec reads job documents of the farm and plans their tasks. It is pure: a document in, tasks out, the same on
// every machine; no files, no clock, no queue.
//
// Parse reads TOML or JSON and returns a Job; Job.Plan makes its tasks, in the order of the document. A Kind (kinds.go,
// where to start) is what a task does: its keys, what it reads and makes, and its command. Tables of keys, with types
// and bounds, make both the parser and the JSON Schema; fields.go has those that all tasks share, options.json those of
// the commands, as their tables of flags declare them. matrix.go makes a task for each combination of
// values; fill.go resolves what tasks name, so that a Task lists the tasks that it needs, its inputs and the flags that
// its command gets.
//
// A document names captures and results by keys below named roots, which whoever runs a task maps to folders or
// buckets. It can carry no command line, no environment and no path of a machine. Whatever a document says, its size,
// its nesting and its number of tasks are bounded before anything is made. An error names the line, and what was
// probably meant.
package spec
