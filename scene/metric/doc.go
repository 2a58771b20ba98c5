// Package metric compares pictures: PSNR, SSIM, the weights of LPIPS, and the corrections of colour that some
// protocols apply before.
package metric
