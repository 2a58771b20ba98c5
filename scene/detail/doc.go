// Package detail chooses which level of which leaf of a streamed model a picture shows, and reads them in time:
// choose.go and store.go.
package detail
