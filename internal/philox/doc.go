// Package philox draws random numbers that are a function of a key and a counter (Philox4x32-10, Salmon et al. 2011),
// so that a draw depends on neither the order of draws nor the number of cores.
package philox
