// Package archtest checks what the compiler cannot: which package may import which, where unsafe and cgo may be,
// how long files and functions may get, that every kernel has a twin, that no text promises what nobody checks.
// Its tests are the package; each message gives the reason of the rule.
package archtest
