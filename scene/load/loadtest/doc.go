// Package loadtest makes small captures on disk and loads them, for tests.
package loadtest
