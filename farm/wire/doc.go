// Package wire speaks to the frontend of Temporal's server, for workers and clients of a farm: by gRPC over net/http
// (conn.go), with errors that say whether waiting helps (errors.go), and in the few messages that a farm needs
// (wire.proto, of which wire_gen.go is made; messages.go).
//
// Temporal's SDK does that and runs workflows besides, which vksplat-farmd alone does. It, or the packages of all of
// Temporal's messages, which bring gRPC's library with them, would make the trainer a fifth to a third larger. Tests
// hold this package against both.
package wire
