// Package spec reads job documents of the farm and plans their tasks. It is pure: a document in, tasks out, the same on every machine; no files, no clock,
// no queue. A document names captures and results by keys below named roots, which whoever runs a task maps to folders: it can carry no command line, no
// environment and no path.
package spec
