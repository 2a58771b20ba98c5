// Package pipeline trains and renders 3D Gaussian splats on Vulkan devices.
//
// Start with step.go: recordStep lists the passes of one training step, and each pass has a file of its own that fills
// the generated struct of its kernel (package shaders). Then read engine.go and trainer.go.
//
// The model of the package:
//
//   - A Device is an opened GPU with budgets of device memory and RAM. Device.Plan computes what a run needs before
//     anything is allocated.
//   - An engine is the device side of training and rendering: setup holds what passes bind, programs the recorded
//     units, memory fits buffers to the budget.
//   - The model is a list of chunks. A chunk is one buffer, a matrix [row][splat] of 32-bit words: parameters, their
//     two Adam moments, statistics. It grows by chunks and copies nothing.
//   - A unit is one piece of work that happens whole or not at all: a step, a carving, a refinement, an opacity reset,
//     a picture. Each has a program, recorded once and submitted many times. Three units are in flight.
//   - Nothing waits inside a unit. Counts stay on the device. What does not fit sets counters[FAILED], later units do
//     nothing, and queue.replay makes room and goes back to the unit that failed.
//   - A strategy decides where splats are added and removed (strategy.go, one file each).
//
// - A Trainer connects its parts: training fills the parameters of units (training.go, package recipe), shards are the
//
// devices (shards.go), queue submits units and collects their reports (queue.go), pressure makes room (pressure.go),
// aligner refines poses (align.go, posetrial.go), report keeps the progress (report.go), saver saves everything that
//
//	  decides later bytes (checkpoints.go, package checkpoint).
//	- A Renderer draws a finished model band by band (renderer.go, parts.go).
//
// Words for several devices: the world size is their number, a device's rank its number from 0, a shard its part of the
// splats; they exchange packets as a team (package team).
//
// Same capture, settings, seed, device and driver give the same bytes: sums have a fixed order, random numbers are a
// function of seed, step and splat, and no capacity or submit splitting decides a byte.
//
// Packages below: recipe for settings and schedule, checkpoint for files of a trainer's state, photos in host memory,
// team for the exchange between devices, failure for errors of the device, lpips, bench. ref holds the plain-Go twin of
// every kernel, in float32 or float64, check the cases that compare both.
package pipeline
