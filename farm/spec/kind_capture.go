package spec

import "slices"

// KindCapture makes a capture of photos or videos, by COLMAP and ffmpeg.
var KindCapture = &Kind{
	Name:  "capture",
	About: "find the cameras of photos or a video",
	fields: keys("capture",
		plain("source", typeInput, "a folder of photos, a video, or the task that draws the photos").need(),
		plain("masks", typeInput, "folder of masks: black regions are ignored"),
		"fps", "frames", "cameras", "camera_model", "max_size", "matching", "mapper",
		option("capture", "model").named("component")),
	Makes:   "a capture",
	Takes:   "pictures",
	Silent:  true,
	Stages:  true,
	Scratch: []string{"components", "database.db", "features.bin", "logs", "matches.bin", "panoramas", "sparse/0/project.ini"},
	inputs:  (*planner).capturing,
	Command: "capture",
	Args: func(c *Call) []string {
		args := slices.Concat(c.Flags(), []string{"--output=" + c.Output, "--progress=none"})
		if c.Masks != "" {
			args = append(args, "--masks="+c.Masks)
		}
		if !slices.ContainsFunc(c.Task.Flags, func(f Flag) bool { return f.Name == "mapper" && f.Value == "global" }) {
			args = append(args, "--mapper=incremental") // the task has no device
		}
		return append(args, "--", c.Source)
	},
}

// capturing refuses keys of a capture that contradict each other.
func (p *planner) capturing(e *expanded, v *variant, _ *Task) error {
	at := path{"task", e.at}
	switch {
	case e.field(v, "mapper") == "own":
		return p.wrong(at.add("mapper"), "leave it out: COLMAP finds the cameras", "tasks of this kind have no device")
	case e.field(v, "fps") != nil && e.field(v, "frames") != nil:
		return p.wrong(at.add("frames"), "give one of them", "fps and frames exclude each other")
	}
	return nil
}
