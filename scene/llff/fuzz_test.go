package llff

import (
	"testing"

	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/poses_bounds.npy", parse)
}
