// Package safetensors reads and writes the safetensors format: named tensors behind a JSON header. Checkpoints and the
// weights of LPIPS are such files.
package safetensors
