// Package lab tests a farm of processes: server, workers and tasks that only count. There is nothing else in it.
package lab
