// Package archtest checks what the compiler cannot: which package may import which, where unsafe and cgo may be, how
// long files and functions may get, that every kernel has a twin, that every dependency has a reason. Its tests are the
// package; each message gives the reason of its rule. The table of layers stands at the top of arch_test.go.
package archtest
