// Package vk is a layer over Vulkan for compute work: instances, devices, memory, kernels, recorded programs. It knows
// nothing about what the kernels compute.
//
// An Instance lists the machine's devices; NewDevice opens one. Nothing is global: several devices, and several
// instances, may live in one process. A Device hands out memory as Views and typed Slices, compiles kernels once per
// set of specialization constants, and takes work.
//
// Work is a list of passes in a Recorder (recorder.go, where to start). A Pass is a generated struct with a field for
// each binding of a kernel. Build turns the list into a Program: command buffers, descriptor sets and timestamps that
// are recorded once and submitted as often as needed. A Submission collects programs and copies; Device.Submit queues
// it and returns a Ticket to wait for. Recording and building may allocate; submitting, waiting and re-recording a
// Copier do not touch the Go heap.
//
// Nobody writes barriers. They follow from what each pass reads and writes (hazard.go), and so do the lifetimes of
// scratch buffers: those that do not overlap share bytes (place.go), and Recorder.Keep lets one outlive its program.
//
// Memory comes in blocks from an arena under a hard byte budget (arena.go). A buffer above 1 MiB has a block of its
// own, small ones share. fits.go rehearses on a copy of the arena what would fit. Memory of several devices is Shared,
// host memory that all import or copies of it, and a Gate holds a program until the others have written.
//
// Two bindings are built: github.com/goki/vulkan, and with -tags vulkango github.com/vulkan-go/vulkan. Both free
// []struct arguments in finalizers that may run during the call. Those calls, and everything newer than Vulkan 1.0, go
// through a C shim (shim*.c), which needs no Vulkan header.
//
// Environment: VKSPLAT_VALIDATE=1 turns on the validation layer, VKSPLAT_SERIAL=1 makes programs without overlap and
// aliasing, VKSPLAT_LIMITS names profiles of a weaker device to stand in for (profile.go), VKSPLAT_LOADER another
// Vulkan loader than libvulkan.so.1.
package vk
