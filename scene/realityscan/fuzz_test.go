package realityscan

import (
	"testing"

	"vksplat/scene/scenetest"
)

func FuzzParse(f *testing.F) {
	scenetest.FuzzRecords(f, "testdata/small/cameras.csv", parse)
}
