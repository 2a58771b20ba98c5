// Package jpeg decodes JPEG photos with libjpeg's arithmetic: the inverse DCT, upsampling and colour conversion give
// the same bytes as libjpeg-turbo's, which COLMAP and every other trainer decode with. Baseline and progressive files,
// gray, YCbCr, RGB and CMYK.
//
// Decode runs the stages in this order: markers.go parses segments, scan.go and progressive.go decode coefficients with
// the tables of huffman.go, idct.go turns them into samples, jpeg.go makes pixels.
package jpeg
