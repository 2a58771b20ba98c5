// Package store keeps what tasks of the farm read and write: files below named roots, atomically committed results,
// checkpoints of unfinished work, and a cache of inputs on the local disk.
//
// A Root is a folder (folder.go) or a bucket (bucket*.go). Open opens one from Options; ReadRoots reads the file of
// named roots. Keys are relative paths with slashes, and no key leads out of its root.
//
// Results are committed atomically, with a Manifest that lists every file with its SHA-256 and says how they were made.
// In a folder a rename commits. A bucket cannot rename (InPlace): there the conditional write of the manifest commits,
// and names the folder of the files. The first attempt wins. Start at Commit and Result.
//
// Fences work over any Root: attempts that were taken for dead and wake change nothing, as checkpoints belong to
// attempts and results to generations (Outdate begins one). Made.Inputs hashes the inputs; no attempt resumes from
// other ones.
//
// Shares and servers go away. patience.go retries for about a minute; IsAway tells such errors from final ones. Sweep
// removes leftovers of killed attempts, Check verifies and repairs. Package s3test has a server for tests.
package store
