// Package atomicfile writes files that are whole or absent.
//
// Write and WriteAt write to a temporary file beside the target, sync it, and rename it over the target, so that a
// reader, a crash or a full disk never sees half a file. Errors are of type *fault.Error. FreeSpace says how much room
// a disk has.
package atomicfile
