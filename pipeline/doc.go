// Package pipeline trains and renders 3D Gaussian splats on Vulkan devices.
//
// Start with step.go: recordStep lists the passes of one training step, and each pass has a file of its own that fills
// the generated struct of its kernel (package shaders). Then read engine.go and trainer.go.
//
// The model of the package:
//
//   - A Device is an opened GPU with budgets of device memory and RAM. Device.Plan computes what a run takes before
//     anything is allocated.
//   - An engine is the device side of training and rendering: the model, the buffers of a view, the recorded programs.
//   - The model is a list of chunks. A chunk is one buffer, a matrix [row][splat] of 32-bit words: parameters, their
//     two Adam moments, statistics. It grows by chunks and copies nothing.
//   - A unit is one piece of work that happens whole or not at all: a step, a carving, a refinement, an opacity reset,
//     a picture. Each has a program, recorded once and submitted many times. Three units are in flight.
//   - Nothing waits inside a unit. Counts stay on the device. What does not fit sets counters[FAILED], later units do
//     nothing, and Trainer.replay grows the buffer and starts again from the unit that failed.
//   - A Trainer schedules units (queue.go). Its parts are a group of members, one a device with its share of the splats
//     and the photos of its views (group.go, member.go); training says what a unit does (training.go, package recipe);
//     the report keeps its progress (report.go); checkpoints save everything that decides later bytes (checkpoints.go,
//     package checkpoint).
//   - A Renderer draws a finished model band by band (renderer.go, parts.go).
//
// Same capture, settings, seed, device and driver give the same bytes: sums have a fixed order, random numbers are a
// function of seed, step and splat, and no capacity or submit splitting decides a byte.
//
// Packages below: recipe for settings and schedule, checkpoint for files of a trainer's state, photos in host memory,
// team for the exchange between devices, failure for errors of the device, lpips, bench. ref holds the plain-Go twin of
// every kernel, in float32 or float64, check the cases that compare both.
package pipeline
