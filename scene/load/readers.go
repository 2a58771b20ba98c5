package load

import (
	"fmt"
	"slices"

	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/bundler"
	"vksplat/scene/exported"
	"vksplat/scene/llff"
	"vksplat/scene/metashape"
	"vksplat/scene/opensfm"
	"vksplat/scene/opf"
	"vksplat/scene/polycam"
	"vksplat/scene/realityscan"
	"vksplat/scene/record3d"
	"vksplat/scene/transforms"
)

type reader struct {
	what string                     // is there where the format is, for people
	find func(root string) []string // the files of cameras in a folder, the best first
	read func(c *scene.Capture, o scene.LoadOptions) ([]scene.Record, error)
}

// readers are those of all formats but COLMAP's, whose models are folders.
var readers = map[string]reader{
	scene.FormatTransforms:  {transforms.TransformsFile, named(transforms.TransformsFile), transforms.Read},
	scene.FormatBlender:     {transforms.TrainFile, named(transforms.TrainFile), transforms.Read},
	scene.FormatMetashape:   {"XML of Metashape's cameras", metashape.Find, metashape.Read},
	scene.FormatRealityScan: {"CSV of RealityScan's camera parameters", realityscan.Find, realityscan.Read},
	scene.FormatPolycam:     {"keyframes of Polycam", polycam.Find, polycam.Read},
	scene.FormatRecord3D:    {"metadata.json of Record3D", record3d.Find, record3d.Read},
	scene.FormatBundler:     {"bundle of Bundler", bundler.Find, bundler.Read},
	scene.FormatOpenSfM:     {"reconstruction.json of OpenSfM", opensfm.Find, opensfm.Read},
	scene.FormatOPF:         {"project of OPF", opf.Find, opf.Read},
	scene.FormatLLFF:        {"poses_bounds.npy of LLFF", llff.Find, llff.Read},
}

func named(name string) func(root string) []string {
	return func(root string) []string { return exported.Existing(root, name) }
}

// otherWhats lists what is searched beside COLMAP's models.
func otherWhats() string {
	others := slices.DeleteFunc(slices.Clone(scene.Formats), func(format string) bool {
		return slices.Contains([]string{scene.FormatColmap, scene.FormatTransforms, scene.FormatBlender}, format)
	})
	return fmt.Sprintf("no %s, no %s and no export of %s", transforms.TransformsFile, transforms.TrainFile,
		wording.Or(others))
}
