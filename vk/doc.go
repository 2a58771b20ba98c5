// Package vk is a small layer over Vulkan for compute work: instances, devices, memory, kernels, recorded programs. It knows nothing about what the
// kernels compute.
//
// An Instance lists the machine's devices; NewDevice opens one. Several devices, and several instances, may live in one process; nothing is global. A
// Device hands out memory as Views from an arena under a byte budget, compiles kernels once per set of specialization constants, and takes work.
//
// Work is declared as a list of passes in a Recorder, which derives from each kernel's bindings where barriers are needed and when a scratch buffer is in
// use, so that scratch buffers whose uses do not overlap share memory. Build turns the list into a Program: command buffers that are recorded once and
// submitted as often as needed. A Submission collects programs and copies; Device.Submit queues it and returns a Ticket to wait for. Recording and
// building may allocate; submitting, waiting and re-recording a Copier do not touch the Go heap.
//
// Environment: VKSPLAT_VALIDATE=1 turns on the validation layer, VKSPLAT_SERIAL=1 makes programs without overlap and aliasing, VKSPLAT_LIMITS names a
// file that lowers a device's limits, VKSPLAT_LOADER another Vulkan loader than libvulkan.so.1.
package vk
