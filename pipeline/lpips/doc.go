// Package lpips compares pictures on a device by the features that an image network finds in them: LPIPS (Zhang et al.
// 2018, The Unreasonable Effectiveness of Deep Features as a Perceptual Metric), with AlexNet or VGG.
//
// Feature maps are rings of rows (bands.go): a picture of any size passes through a fixed budget band by band, and each
// row of each map is made once. Scores do not depend on the budget. New takes the weights to a device, Scorer.Reserve
// takes the memory before others do, Scorer.Score compares two pictures.
package lpips
