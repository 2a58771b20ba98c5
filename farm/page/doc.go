// Package page shows a farm to people and programs that may look and change nothing: pages for a browser, behind the guard of package view, numbers for
// Prometheus, and a message to an address of the server's configuration when a job has ended.
package page
