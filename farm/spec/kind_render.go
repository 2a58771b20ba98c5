package spec

import (
	"fmt"
	"slices"
	"strings"
)

// KindRender draws pictures of a model.
var KindRender = &Kind{
	Name:  "render",
	About: "render pictures of a model",
	fields: keys("render",
		plain("model", typeInput, "the model").need(),
		plain("cameras", typeInput, "capture or cameras.json to take the views of"),
		"split",
		plain("trajectory", typeCamera, "interp, ellipse, spiral, orbit, or the key of a file of cameras"),
		plain("frames", typeFrames, "pictures A-B, or every Nth: A-BxN, counted from 0"),
		number("chunk", typeInt, 1, 1e6, "pictures of a task"),
		number("first", typeInts, 0, maxFrame, "frames that are rendered first, for approval").list(0, maxInspect),
		"seconds", "fps", "size", "fov", "projection", "format", "colorspace", "alpha", "depth", "normals",
		"antialiased", "background", "near"),
	Makes:       "pictures",
	Takes:       "a capture",
	Parts:       true,
	NeedsDevice: true,
	Draws:       true,
	count: func(p *planner, e *expanded, v *variant) (int, error) {
		return p.pieces(e, v, nil)
	},
	fill:    (*planner).fillFrames,
	Command: "render",
	Args:    renderArgs,
}

// Beside says whether a file of a render's results goes beside a picture: depths or normals.
func Beside(name string) bool {
	return strings.HasSuffix(name, ".depth.npy") || strings.HasSuffix(name, ".normal.png")
}

// renderArgs has pictures of trajectories named by number.
func renderArgs(c *Call) []string {
	args := slices.Concat(c.Device, c.Flags(), []string{"--output=" + c.Output})
	if c.Cameras != "" {
		args = append(args, "--cameras="+c.Cameras)
	}
	if c.Trajectory != "" {
		args = append(args, "--trajectory="+c.Trajectory)
	}
	if c.Task.Frames.Count() > 0 {
		args = append(args, "--frames="+c.Task.Frames.String())
	}
	if c.Trajectory != "" || c.Task.Flag("trajectory") != "" {
		args = append(args, "--name=frame_%06d")
	}
	return append(args, "--", c.Model)
}

// pieces counts the tasks of a render and hands their frames to each, if that is given: first those of `first`, one by
// one, then what lies between them in chunks.
func (p *planner) pieces(e *expanded, v *variant, each func(f Frames, inspect bool)) (int, error) {
	at := path{"task", e.at}
	text, given := e.field(v, "frames").(string)
	chunk, _ := e.field(v, "chunk").(int64)
	first := listOf[int64](e.field(v, "first"))
	if each == nil {
		each = func(Frames, bool) {}
	}
	if !given {
		if chunk > 0 || len(first) > 0 {
			return 0, p.wrong(at, `as in: frames = "0-299"`, "chunk and first need frames")
		}
		each(Frames{}, false)
		return 1, nil
	}
	all, err := ParseFrames(text)
	if err != nil {
		return 0, p.wrong(at.add("frames"), "", "%w", err)
	}
	if chunk == 0 {
		chunk = int64(all.Count())
	}
	slices.Sort(first)
	n, from := 0, 0 // places in all
	for _, x := range first {
		f := int(x)
		if f < all.First || f > all.Last || (f-all.First)%all.Step != 0 {
			return 0, p.wrong(at.add("first"), "give frames of "+text, "frame %d is not in %s", f, text)
		}
		each(Frames{f, f, 1}, true)
		n++
	}
	for i := range len(first) + 1 {
		to := all.Count()
		if i < len(first) {
			to = (int(first[i]) - all.First) / all.Step
		}
		if pieces := (int64(to-from) + chunk - 1) / chunk; to > from && pieces > int64(MaxTasks) {
			return 0, p.wrong(at.add("chunk"), "give larger chunks", "the job has more than %d tasks", MaxTasks)
		}
		for ; from < to; from += int(chunk) {
			end := min(from+int(chunk), to) - 1
			each(Frames{all.First + from*all.Step, all.First + end*all.Step, all.Step}, false)
			n++
		}
		from = to + 1
	}
	return n, nil
}

// fillFrames gives the tasks of a render their frames. Those of the rest wait for those that are looked at.
func (p *planner) fillFrames(e *expanded, v *variant, tasks []Task) error {
	n := 0
	var looked []int
	var err error
	name := tasks[0].Name
	_, wrong := p.pieces(e, v, func(f Frames, inspect bool) {
		t := &tasks[n]
		n++
		t.Frames, t.Inspect = f, inspect
		switch {
		case inspect:
			t.Name = fmt.Sprintf("%s/first-%04d", name, f.First)
			looked = append(looked, t.Index)
		case len(tasks) > 1:
			t.Name = fmt.Sprintf("%s/%04d-%04d", name, f.First, f.Last)
		}
		if !inspect && err == nil {
			err = p.need(t, looked, 0)
		}
	})
	if wrong != nil {
		return wrong
	}
	return err
}
