// Package parallel runs loops on all cores. The order of calls never shows in a result, because each call writes to
// places of its own.
package parallel
