package scene

import "vksplat/internal/fault"

// Remedies say what to do, by the code of a problem.
var Remedies = map[string]string{
	"missing-photos": "copy the photos to where the model expects them, or name their folder with " +
		fault.Setting("images") + " DIR",
	"broken-photos": "copy or export these photos again as JPEG or PNG",
	"cut-photos": "copy these photos again: the copies are incomplete; otherwise their steps train on the photos " +
		"after them",
	"undecodable-photos": "copy or export these photos again as JPEG or PNG",
	"unregistered-photos": "no action needed; to use these photos too, add views that overlap with them " +
		"and find the cameras again",
	"few-registered": "the reconstruction lost most photos: match exhaustively, take more overlapping " +
		"photos, or choose another model with " + fault.Setting("model") + " N",
	"other-models": "choose another model with " + fault.Setting("model") +
		" N; several models mean that COLMAP could not connect the photos: take more that overlap",
	"unaligned-photos": "no action needed; to use these photos too, align them in the program and export " +
		"again",
	"disabled-photos": "no action needed; to use these photos too, enable them in the program and export " +
		"again",
	"other-chunks":     "export the chunk that you want alone, or merge the chunks",
	"other-files":      "name the file that you want instead of its folder",
	"other-components": "several components mean that the photos could not be connected: take more that overlap",
	"other-clouds":     "leave one PLY file in the folder, or start with " + fault.Setting("init") + " ply:FILE",
	"bad-points":       "export the model again if this is more than a few points",
	"bad-poses":        "export the model again, or remove these photos from it",
	"wild-poses":       "correct these poses, or remove the photos from the model",
	"missing-points": "correct ply_file_path, or start with " + fault.Setting("init") + " random or " +
		fault.Setting("init") + " ply:FILE",
	"missing-masks": "add masks named after these photos, or leave it: they count whole",
	"no-masks": "name the masks after the photos: the mask of a/b.jpg is a/b.png, a/b.jpg.png or " +
		"a/b.mask.png",
	"unknown-filenames":    "correct the lists of filenames in the JSON file",
	"skewed-poses":         "write the file again with more digits",
	"scaled-poses":         "write poses without scale, or leave it: the positions are taken as they are",
	"unclear-motion":       "correct the fields, or leave it: photos of a camera that moved are trained on as taken",
	"no-applied-transform": "leave out " + fault.Setting("undo-applied-transform"),
	"no-points": "start with random points, " + fault.Setting("init") +
		" random, or with a point cloud, " + fault.Setting("init") + " ply:FILE",
	"few-points": "take more overlapping photos, or start with a denser cloud: " +
		fault.Setting("init") + " ply:FILE",
	"far-points": "no action needed if it is the sky; otherwise remove these points, or " +
		"sample with " + fault.Setting("init-grid"),
	"unseen-points": "check that points and poses are from the same model",
	"blind-cameras": "check the poses of these photos; remove from the model those that are wrong",
	"same-pose":     "keep one photo of each pose: the others say nothing about depth",
	"one-pose": "the model has no poses: run COLMAP again, or export the poses with the cameras' own " +
		"matrices",
	"far-cameras":      "check the poses of these photos; remove from the model those that are wrong",
	"orientation-tags": "no action needed if the model was made from these files as they are",
	"dark-photos":      "remove photos that show nothing",
	"blurred-photos":   "remove the blurred ones where sharp photos show the same",
	"small-photos":     "train on larger photos, or with a smaller " + fault.Setting("downscale"),
	"folded-lenses": "calibrate again, with fewer distortion parameters or more photos, or correct the " +
		"camera's parameters in the capture",
	"odd-panoramas": "export them at 2:1, with black where nothing was seen, if they show less than the " +
		"whole sphere",
	"broken-masks": "export these masks again as PNG, white where the photo counts, or remove them: " +
		"their photos count whole then",
	"stretched-masks": "draw the masks from the photos that are trained on, or from copies of them scaled " +
		"as a whole, not cropped",
	"turned-masks": "turn the masks to how the photos are stored: orientation tags do not count",
	"black-masks": "white counts: draw these masks again, invert them all with " +
		fault.Setting("invert-masks") + ", or remove them: their photos count whole then",
}

// Span is some cameras in a row.
type Span struct{ First, End int }

// PhotoGroups gives the cameras of each photo, which are next to each other.
func PhotoGroups(cams []Camera) (groups []Span) {
	for i := range cams {
		if n := len(groups); n > 0 && cams[i].Photo != "" && cams[i].Photo == cams[i-1].Photo {
			groups[n-1].End = i + 1
			continue
		}
		groups = append(groups, Span{i, i + 1})
	}
	return groups
}

const BlindCamera = 5 // points in view that say nothing

const (
	MinPhotos     = 3    // fewer views than this say nothing about depth
	MaxNames      = 5    // in a warning or an error
	MaxCoordinate = 1e15 // beyond it float64 resolves no tenth of a unit
)
