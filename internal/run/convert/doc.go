// Package convert turns models of one format into another, and filters them on the way. Run is the command; ExportTo
// converts one file, as training does at its end. Models pass through piece by piece and may be larger than memory.
package convert
