// Package proof has the tests of vksplat-farmd as a whole: they build the program, start it, and do to it what users,
// attackers and power cuts do. It links the clients only.
package proof
