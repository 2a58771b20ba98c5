//go:build !windows

package main

// unlocked is SQLite's access to files without locks.
const unlocked = "unix-none"
