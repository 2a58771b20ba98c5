// Package inspect says what is wrong with a capture before hours are spent on it: missing and damaged photos, masks
// that do not fit, poses that cannot be, points that no camera sees, photos that are blurred or dark. Capture makes a
// Report of Problems, each with a severity, a code and a remedy.
package inspect
