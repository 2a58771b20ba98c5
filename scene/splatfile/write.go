package splatfile

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/scene"
)

// writeError names the file that was to be written in an error. What the error says already stays, such as the file of
// the model that was read.
func writeError(op, path string, err error) error {
	out := &fault.Error{Op: op, Path: path, Err: err}
	var known *fault.Error
	if errors.As(err, &known) {
		if known.Op != "" {
			return err
		}
		out.Err, out.Hint = known.Err, known.Hint
	}
	return out
}

// writer makes the Write of a format of one that returns errors without the file's name. known are the versions of the
// format that it writes.
func writer(op string, write func(path string, model Source, o WriteOptions) ([]string, error), known ...int,
) func(path string, model Source, o WriteOptions) ([]string, error) {
	return func(path string, model Source, o WriteOptions) ([]string, error) {
		if err := checkVersion(op, path, o.Version, known...); err != nil {
			return nil, err
		}
		lost, err := write(path, model, o)
		if err != nil {
			return nil, writeError(op, path, err)
		}
		return lost, nil
	}
}

// refusal is the error of a model that a format cannot hold; writeError completes it.
func refusal(hint, format string, args ...any) error {
	return &fault.Error{Err: fmt.Errorf(format, args...), Hint: hint}
}

// checkVersion refuses versions of a format that are not written; 0 stands for the format's own.
func checkVersion(op, path string, version int, known ...int) error {
	if version == 0 || slices.Contains(known, version) {
		return nil
	}
	hint := "leave the version out"
	if len(known) > 0 {
		hint = "leave the version out, or give " + versionsText(known)
	}
	return &fault.Error{Op: op, Path: path, Err: fmt.Errorf("version %d is not written", version), Hint: hint,
		Kind: fault.ErrUsage}
}

// versionsText lists versions for people.
func versionsText(versions []int) string {
	words := make([]string, len(versions))
	for i, v := range versions {
		words[i] = strconv.Itoa(v)
	}
	return wording.Or(words)
}

// FolderFor is the folder for what does not fit memory while path is written.
func (o WriteOptions) FolderFor(path string) string {
	if o.TempDir != "" {
		return o.TempDir
	}
	return filepath.Dir(path)
}

// lostOf says which of a model's properties a format has no place for, which of all that concern drawing keeps the flag
// antialiased or nothing.
func lostOf(info Info, format string, keepsAntialiased bool) (lost []string) {
	if info.Meta.Antialiased && !keepsAntialiased {
		lost = append(lost, format+" cannot record that the model was trained antialiased: viewers may show small "+
			"splats too thick")
	}
	if info.Meta.Origin != nil {
		lost = append(lost, fmt.Sprintf("%s cannot store the origin that was subtracted from the coordinates: %v",
			format, *info.Meta.Origin))
	}
	if b := info.Meta.Background; b != nil && *b != [3]float32{} {
		lost = append(lost, fmt.Sprintf("%s cannot record that the model was trained on the background %g,%g,%g",
			format,
			b[0], b[1], b[2]))
	}
	if info.Meta.Near != 0 {
		lost = append(lost, fmt.Sprintf("%s cannot record that the model was trained with the near plane %g", format,
			info.Meta.Near))
	}
	if info.Meta.Exposure {
		lost = append(lost, format+" cannot record that the model was trained with a colour map for each photo")
	}
	return lost
}

// lostComments says that a format has no place for a model's comments, if it has some.
func lostComments(info Info, format string) []string {
	if len(info.Meta.Comments) == 0 {
		return nil
	}
	return []string{format + " cannot store comments"}
}

// lostSome says how many values were cut, if any.
func lostSome(lost []string, n int, what string) []string {
	if n == 0 {
		return lost
	}
	return append(lost, fmt.Sprintf("%d %s", n, what))
}

// eachPiece hands the pieces of a model to put, with the number of the first splat of each, and wants as many splats as
// were announced.
func eachPiece(model Source, put func(first int, piece *scene.Splats) error) error {
	info, done := model.Info(), 0
	err := model.Read(func(piece *scene.Splats) error {
		if piece.Degree != info.Degree || done+piece.N > info.N {
			return fmt.Errorf("splatfile: read model: piece of %d splats of degree %d after %d, announced are %d of "+
				"degree %d", piece.N, piece.Degree, done, info.N, info.Degree)
		}
		done += piece.N
		return put(done-piece.N, piece)
	})
	if err == nil && done < info.N {
		err = fmt.Errorf("splatfile: read model: %d splats of %d came", done, info.N)
	}
	return err
}

// eachWritable is eachPiece for what is written: splats that nothing can draw are refused, and rotations have length 1.
func eachWritable(model Source, put func(first int, piece *scene.Splats) error) error {
	return eachPiece(model, func(first int, piece *scene.Splats) error {
		if err := makeWritable(piece, func(i int) int { return first + i }); err != nil {
			return err
		}
		return put(first, piece)
	})
}

// makeWritable checks splats, whose numbers in the model it is told, and normalises their rotations.
func makeWritable(s *scene.Splats, number func(i int) int) error {
	for i := range s.N {
		if err := broken(s, i); err != nil {
			return unwritable(number(i), err)
		}
		q := s.Quats[4*i : 4*i+4]
		length := math.Sqrt(squaredLength(q))
		for j, x := range q {
			q[j] = float32(float64(x) / length)
		}
	}
	return nil
}

func squaredLength(q []float32) (sum float64) {
	for _, x := range q {
		sum += float64(float64(x) * float64(x))
	}
	return sum
}

// broken says why nothing can draw a splat, nil if something can.
func broken(s *scene.Splats, i int) error {
	tensors := s.Tensors()
	for k := range tensors {
		t := &tensors[k]
		for j, x := range t.At(i) {
			if !isFinite(x) {
				return fmt.Errorf("%s[%d] is %v: not a finite number", plainName(t.Name), j, x)
			}
		}
	}
	if q := [4]float32(s.Quats[4*i:]); q == [4]float32{} {
		return fmt.Errorf("rotation %v has no direction", q)
	}
	return nil
}

// plainName is a tensor's name in messages.
func plainName(tensor string) string {
	switch tensor {
	case "means":
		return "position"
	case "quats":
		return "rotation"
	case "log_scales":
		return "scale"
	case "logit_opacities":
		return "opacity"
	}
	return tensor
}

// unwritable is the error of a splat that a writer refuses.
func unwritable(splat int, err error) error {
	return refusal("leave out the splats whose numbers are not finite or whose rotation is zero", "splat %d: %w", splat,
		err)
}

// arranged is a model that is written in another order.
type arranged struct {
	Gatherer
	order []uint32
	free  func() error
}

// arrange finds the order of a model. What free gives back is what was needed to read it in that order.
func arrange(model Source, tempDir string, by func(Source) ([]uint32, error)) (*arranged, error) {
	g, free, err := gatherable(model, tempDir)
	if err != nil {
		return nil, err
	}
	order, err := by(g)
	if err != nil {
		return nil, errors.Join(err, free())
	}
	return &arranged{g, order, free}, nil
}

// each hands splats to put in order, in pieces of the given size, as eachWritable does.
func (a *arranged) each(size int, put func(piece *scene.Splats) error) error {
	room := scene.NewSplats(min(len(a.order), size), a.Info().Degree)
	for lo := 0; lo < len(a.order); lo += size {
		ids := a.order[lo:min(lo+size, len(a.order))]
		piece := room.Slice(0, len(ids))
		if err := a.Gather(ids, piece); err != nil {
			return err
		}
		if err := makeWritable(piece, func(i int) int { return int(ids[i]) }); err != nil {
			return err
		}
		if err := put(piece); err != nil {
			return err
		}
	}
	return nil
}
