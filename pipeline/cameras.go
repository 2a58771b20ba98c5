package pipeline

import (
	"vksplat/pipeline/features"
	"vksplat/pipeline/matching"
)

// NewFeatures makes what finds the keypoints of photos, see features.New.
func NewFeatures(d *Device, o features.Options) (*features.Extractor, error) {
	return features.New(d.dev, o)
}

// NewMatcher makes what matches photos, see matching.New.
func NewMatcher(d *Device, photos []matching.Photo, o matching.Options) (*matching.Matcher, error) {
	return matching.New(d.dev, photos, o)
}
