// Package strictjson reads JSON that other programs wrote. It refuses what does not fit, says which field is wrong and
// why, and takes no more memory than the file has bytes, times a constant.
package strictjson
