// Package client submits jobs to a farm, and shows and changes them. Nothing is kept here: the farm's server knows what
// runs, the store what is done. Start at Dial (client.go); job.go has what is done to one job, show.go what is known of
// it.
package client
