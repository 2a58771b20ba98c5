// Package store keeps what tasks of the farm read and write: files below named roots, results that are there whole or
// not at all, checkpoints of unfinished work, and a cache of inputs on the local disk. It knows files, not what makes
// them.
//
// A Root is a folder (folder.go) or a bucket (bucket*.go). Open makes one from Options; ReadRoots reads the file that
// says which root is where. Keys are relative paths with slashes, and no key leads out of its root.
//
// Results are committed all at once, with a Manifest that lists every file with its SHA-256 and says what made them. In
// a folder a rename commits; in a bucket, where nothing is renamed, the conditional write of the manifest does, and
// names the folder that counts. The first attempt wins. Start at Commit and Result.
//
// Fences keep attempts apart that were taken for dead and wake: checkpoints belong to attempts, results to generations
// (Outdate begins a new one). Made.Inputs says what results were made from, and nobody resumes from what was made of
// other inputs.
//
// Shares and servers go away. patience.go asks again for about a minute; IsAway tells such errors from final ones.
// Sweep removes what killed attempts left, Check verifies and repairs. Package s3test has a server for tests.
package store
