// Package shaders holds the compute kernels: GLSL sources, their compiled SPIR-V, and one generated Go struct per
// kernel.
//
// Every <name>.comp shows its whole interface: storage buffers with readonly or writeonly, push constants,
// specialization constants. Its header says what it computes, what it reads and writes, and what one invocation is.
// What kernels share is in shared/*.glsl: tiles, blending by patches, sums in a fixed order, projection, mixed
// precision.
//
// tools/shadergen compiles each to spv/<name>.spv and prints <name>_gen.go, a struct that implements vk.Pass with one
// typed field per buffer. GLSL structs and the constants of shared/const.glsl become package layout, which the twins in
// pipeline/ref use as well. Generated files are committed, so that building needs no shader compiler.
//
// Start at rasterize.comp and shared/raster.glsl. To add or change a kernel, edit its .comp and run make gen;
// CONTRIBUTING.md has the other steps. Kernels use no float atomics, and no byte may depend on the subgroup's size.
package shaders

//go:generate go run vksplat/tools/shadergen
