// Package checkpoint reads and writes checkpoints. A checkpoint is a file in the safetensors layout that holds all that
// decides the bytes of the model to come: every parameter with both moments and the strategy's statistics, splat by
// splat whatever the size of the device's chunks, and the JSON of a Header. No clock, path, capacity or command line is
// in it: equal runs have equal files.
//
// A Writer copies or streams a State, which is where a trainer has its splats on its devices, into a file. Open reads
// a file's header; State.Read fills a trainer's devices from its tensors.
package checkpoint
