// Package inspection checks a capture before training and prints what it finds. Package scene/inspect does the checks.
package inspection
