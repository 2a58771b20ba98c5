// Package desk is the page from which a person works with a mouse or a finger: choose a folder, read the verdict on it,
// train, watch, stop and continue, compare runs, export, render a flight, upload a video.
//
// Everything that takes long is a job: a child process of this program that runs a command as a person would type it
// (work.go), so that what crashes takes nothing along and what is stopped can be resumed. Jobs that need the device
// wait for each other, and so do those that need the cores (jobs.go). What a child reports becomes the numbers of
// its job (progress.go). Runs are known by their folders alone (runs.go): whatever the desk shows, it reads from the
// records that train wrote. Questions about a capture are answered by children, too (checks.go). Viewers are other
// processes, to which requests are relayed (shows.go).
//
// Start at handlers.go. Package view guards every request; here paths are confined to the chosen root (places.go),
// names to what every system takes (names.go), and bodies are bounded (upload.go). Disks are waited for without the
// lock of the desk, so that a slow one delays only its own request.
package desk
