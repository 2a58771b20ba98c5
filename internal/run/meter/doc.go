// Package meter shows how far a command is: a Meter draws a bar on a terminal, prints plain lines elsewhere, or JSON
// for programs. The lines of metrics.jsonl have the same form.
package meter
