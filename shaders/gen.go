// Package shaders holds the compute kernels: GLSL sources, their compiled SPIR-V, and one generated Go struct per kernel.
//
// Every <name>.comp shows its whole interface: storage buffers with readonly or writeonly, push constants,
// specialization constants. tools/shadergen compiles it to spv/<name>.spv and prints <name>_gen.go, a struct that
// implements vk.Pass with one typed field per buffer. GLSL structs and the constants of shared/const.glsl
// become the package layout. The generated files are committed, so that building needs no shader compiler.
//
// To add or change a kernel, edit its .comp and run `go generate ./shaders`.
package shaders

//go:generate go run vksplat/tools/shadergen
