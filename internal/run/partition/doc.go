// Package partition divides a large capture into blocks and writes the plan. Without a shape it chooses as many blocks
// as the memory of the device asks for.
package partition
