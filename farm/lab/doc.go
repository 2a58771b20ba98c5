// Package lab tests a farm of processes: server, workers and tasks that only count. For tests elsewhere it has a network that fails on demand, and
// addresses that stay free.
package lab
