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
		list, err := p.pieces(e, v)
		return len(list), err
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

// piece is the frames of a task of a render.
type piece struct {
	Frames
	inspect bool // for approval, before others
}

// pieces divides the frames of a render among its tasks: first those of `first`, one by one, then what lies between
// them in chunks.
func (p *planner) pieces(e *expanded, v *variant) (list []piece, err error) {
	at := path{"task", e.at}
	text, given := e.field(v, "frames").(string)
	chunk, _ := e.field(v, "chunk").(int64)
	first := listOf[int64](e.field(v, "first"))
	if !given {
		if chunk > 0 || len(first) > 0 {
			return nil, p.wrong(at, `as in: frames = "0-299"`, "chunk and first need frames")
		}
		return []piece{{}}, nil
	}
	all, err := ParseFrames(text)
	if err != nil {
		return nil, p.wrong(at.add("frames"), "", "%w", err)
	}
	step := all.Count() // of a chunk
	if chunk > 0 {
		step = int(chunk)
	}
	slices.Sort(first)
	var ends []int // of what lies between, as places in all
	for _, x := range first {
		f := int(x)
		if f < all.First || f > all.Last || (f-all.First)%all.Step != 0 {
			return nil, p.wrong(at.add("first"), "give frames of "+text, "frame %d is not in %s", f, text)
		}
		list = append(list, piece{Frames{f, f, 1}, true})
		ends = append(ends, (f-all.First)/all.Step)
	}
	from := 0
	for _, to := range append(ends, all.Count()) {
		if (to-from-1)/step >= MaxTasks {
			return nil, p.tooMany(at.add("chunk"))
		}
		for ; from < to; from += step {
			end := min(from+step, to) - 1
			list = append(list, piece{Frames{all.First + from*all.Step, all.First + end*all.Step, all.Step}, false})
		}
		from = to + 1
	}
	return list, nil
}

// fillFrames gives the tasks of a render their frames. Those of the rest wait for those that are looked at.
func (p *planner) fillFrames(e *expanded, v *variant, tasks []Task) error {
	list, err := p.pieces(e, v)
	if err != nil {
		return err
	}
	var looked []int
	name := tasks[0].Name
	for n, f := range list {
		t := &tasks[n]
		t.Frames, t.Inspect = f.Frames, f.inspect
		if f.inspect {
			t.Name = fmt.Sprintf("%s/first-%04d", name, f.First)
			looked = append(looked, t.Index)
			continue
		}
		if len(tasks) > 1 {
			t.Name = fmt.Sprintf("%s/%04d-%04d", name, f.First, f.Last)
		}
		if err := p.need(t, looked, 0); err != nil {
			return err
		}
	}
	return nil
}
