// Package report makes report.html, the page about a training run. It holds all that it shows, so that it can be sent
// to somebody. A Page is what the template is filled with.
package report
