// Package server runs the queue of a farm inside this process: a NATS server with JetStream, whose messages are on disk before they are acknowledged, who
// may connect to it and do what, and the reconciler of package queue.
//
//	DIR/jetstream/      what the server stores
//	DIR/keys/*.json     who may connect: public key, role, name, expiry; a file that is removed is a token revoked
//	DIR/tls/            certificates that the server made itself
//	DIR/address.json    where the running, or last, server listens
//	DIR/admin.token     for commands on this machine, made at the first start
//
// Nobody connects without a key. Beyond this machine nobody connects without TLS 1.3 either.
package server
