// Package picture writes what the renderer draws: PNG of 8 and 16 bits, JPEG, OpenEXR and NumPy files, with alpha,
// depth and panoramas. The Whole functions tell whether a file was written to its end.
package picture
