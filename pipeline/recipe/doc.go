// Package recipe says what a training does, without a device: its settings (Config), the schedule of its units of work,
// and the numbers that the kernels of a step read. All of them are functions of the settings, the step and the scene's
// size.
package recipe
