// Package team joins devices that train one scene. Each has a share of the splats and, in a step, a view of its own.
//
// What a view sees of the others' splats comes to its device in packets, one from each of them; the gradients of those
// projections go back the same way. Packets lie in host memory that both devices reach. Where one device has written
// and another is to read, the reader's program waits at a gate, which the host opens (relay.go). No order of arrival
// decides a byte.
//
// Several units are queued, and packets are there once: a device comes to the next step only when it has all gradients
// of this one, and whoever sent those had read what this device sent before.
//
// Links say where a device's programs find packets, headers and gates (packet.go). The passes that fill and empty them
// are package pipeline's (stepteam.go).
package team
