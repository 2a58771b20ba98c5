//go:build !unix

package main

// lockFile does nothing: this system has no flock.
func lockFile(string) (func(), error) { return func() {}, nil }
