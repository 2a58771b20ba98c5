package spec

import (
	"cmp"
	"path/filepath"
)

// KindEncode makes a video of pictures.
var KindEncode = &Kind{
	Name:  "encode",
	About: "make a video of pictures",
	fields: keys("encode",
		plain("source", typeInput, "the render task, or a folder of pictures").need(),
		"fps", "crf",
		oneOf("format", "of the video", "mp4", "mov", "mkv", "webm")),
	Makes:  "a video",
	Takes:  "pictures",
	Silent: true,
	inputs: func(_ *planner, e *expanded, v *variant, t *Task) error {
		format, _ := e.field(v, "format").(string)
		t.Format = cmp.Or(format, "mp4")
		return nil
	},
	Command: "encode",
	Args: func(c *Call) []string {
		return append(c.Flags(), "--output="+filepath.Join(c.Output, "video."+c.Task.Format), "--", c.Source)
	},
}
