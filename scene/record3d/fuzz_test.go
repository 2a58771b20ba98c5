package record3d

import (
	"testing"

	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/metadata.json", parse)
}
