package spec

import "slices"

// cameraModels are those of vksplat capture.
var cameraModels = []string{"auto", "SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "FULL_OPENCV",
	"SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "OPENCV_FISHEYE", "THIN_PRISM_FISHEYE", "EQUIRECTANGULAR"}

// KindCapture makes a capture of photos or videos, by COLMAP and ffmpeg.
var KindCapture = &Kind{
	Name:  "capture",
	About: "find the cameras of photos or a video",
	fields: []field{
		plain("source", typeInput, "a folder of photos, a video, or the task that draws the photos").need(),
		plain("masks", typeInput, "folder of masks: black regions are ignored"),
		plain("vocab_tree", typeInput, "COLMAP vocabulary tree file; for loops, and for many photos"),
		number("fps", typeFloat, 0.001, 1000, "frames to extract per second of video").to("fps"),
		number("frames", typeInt, 3, 1e6, "frames to extract per video").to("frames"),
		oneOf("cameras", "which photos share a camera", "auto", "one", "many", "folder").to("cameras"),
		oneOf("camera_model", "of COLMAP", cameraModels...).to("camera-model"),
		oneOf("features", "kind of features; aliked needs COLMAP 4", "sift", "aliked").to("features"),
		number("max_size", typeInt, 64, maxSide, "longer side in pixels at which features are detected").to("max-size"),
		oneOf("matching", "pairs to match", "auto", "exhaustive", "sequential", "tree").to("matching"),
		truth("loops", "match sequentially, with loop detection").to("loops"),
		oneOf("mapper", "global needs COLMAP 4 or glomap", "incremental", "global").to("mapper"),
		oneOf("gpu", "what COLMAP uses", "auto", "on", "off").to("gpu"),
		number("component", typeInt, 0, 1e6, "component to use instead of the one with most photos").to("model"),
	},
	Makes:   "a capture",
	Takes:   "pictures",
	Silent:  true,
	Stages:  true,
	Scratch: []string{"components", "database.db", "logs", "panoramas", "sparse/0/project.ini"},
	inputs:  (*planner).capturing,
	Command: "capture",
	Args: func(c *Call) []string {
		args := slices.Concat(c.Flags(), []string{"--output=" + c.Output, "--progress=none"})
		if c.Masks != "" {
			args = append(args, "--masks="+c.Masks)
		}
		if c.VocabTree != "" {
			args = append(args, "--vocab-tree="+c.VocabTree)
		}
		return append(args, "--", c.Source)
	},
}

// capturing refuses keys of a capture that contradict each other.
func (p *planner) capturing(e *expanded, v *variant, t *Task) error {
	at := path{"task", e.at}
	matching, _ := e.field(v, "matching").(string)
	loops, _ := e.field(v, "loops").(bool)
	switch {
	case e.field(v, "fps") != nil && e.field(v, "frames") != nil:
		return p.wrong(at.add("frames"), "give one of them", "fps and frames exclude each other")
	case matching == "tree" && t.VocabTree.None():
		return p.wrong(at.add("matching"), "download one from https://demuth.inf.ethz.ch and add: vocab_tree",
			"tree needs a vocabulary tree")
	case loops && (matching == "tree" || matching == "exhaustive"):
		return p.wrong(at.add("matching"), "leave out one of them; loops matches sequentially",
			"loops and %s matching exclude each other", matching)
	}
	return nil
}
