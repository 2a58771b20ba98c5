// Package wire speaks to the frontend of Temporal's server, for workers and clients of a farm: gRPC's calls over HTTP/2
// (conn.go), the errors that they end with (errors.go), and the few messages that a farm needs (messages.go), with the
// fields that it needs of them, in the wire format of protocol buffers (codec.go).
//
// Temporal's SDK does that and runs workflows besides, which vksplat-farmd alone does. It and gRPC's library would make
// the trainer a half larger. Tests hold this package against both.
package wire
