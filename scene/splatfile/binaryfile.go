package splatfile

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"

	"vksplat/scene"
)

// openBinary opens a file for reading anywhere, and gives its size.
func openBinary(op, path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, 0, &scene.Error{Op: op, Path: path, Err: errors.New("it is no regular file"), Hint: "name a file on a disk"}
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0, &scene.Error{Op: op, Path: path, Err: cause(err), Hint: "check the spelling of the path"}
	case err != nil:
		return nil, 0, &scene.Error{Op: op, Path: path, Err: cause(err), Hint: "make the file readable for this user", Kind: scene.ErrTryAgain}
	}
	return file, info.Size(), nil
}

// writeFailed names the file that was to be written in an error. Errors that say it all, such as those of reading the model, stay as they are.
func writeFailed(op, path string, err error, hint string) error {
	var known *scene.Error
	if errors.As(err, &known) {
		return err
	}
	var file *fs.PathError
	if errors.As(err, &file) {
		return &scene.Error{Op: op, Path: path, Err: err, Hint: "free some space for temporary files, or name another folder for them", Kind: scene.ErrTryAgain}
	}
	return &scene.Error{Op: op, Path: path, Err: err, Hint: hint}
}

// pruneHint is the remedy for splats that eachPiece refuses.
const pruneHint = "leave out the splats whose numbers are not finite or whose rotation is zero"

// cause drops the path from an error of package os: scene.Error names it.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// unitRotations normalises the rotations of a piece in place, in float64. The piece's first splat is number first of the model.
func unitRotations(piece *scene.Splats, first int) error {
	for i := range piece.N {
		q := piece.Quats[4*i : 4*i+4]
		length := 0.0
		for _, x := range q {
			length += float64(x) * float64(x)
		}
		length = math.Sqrt(length)
		if length == 0 || math.IsInf(length, 0) || math.IsNaN(length) {
			return fmt.Errorf("splat %d: rotation %v has no direction", first+i, q)
		}
		for j := range q {
			q[j] = float32(float64(q[j]) / length)
		}
	}
	return nil
}

// checkFinite says which splat of a piece holds a number that is not finite. The piece's first splat is number first of the model.
func checkFinite(piece *scene.Splats, first int) error {
	if piece.Validate() == nil {
		return nil
	}
	for i := range piece.N {
		if err := piece.Slice(i, i+1).Validate(); err != nil {
			return fmt.Errorf("splat %d of the model: %w", first+i, err)
		}
	}
	return nil
}

// eachPiece hands the pieces of a model that is being written to put, with the number of the first splat of each, after checking that every number is
// finite and normalising rotations.
func eachPiece(model Source, put func(first int, piece *scene.Splats) error) error {
	info, done := model.Info(), 0
	err := model.Read(func(piece *scene.Splats) error {
		if err := checkPiece(done, piece, info); err != nil {
			return err
		}
		if err := checkFinite(piece, done); err != nil {
			return err
		}
		if err := unitRotations(piece, done); err != nil {
			return err
		}
		done += piece.N
		return put(done-piece.N, piece)
	})
	if err == nil && done < info.N {
		err = fmt.Errorf("splatfile: write model: %d splats of %d came", done, info.N)
	}
	return err
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func logit(x float64) float64 { return math.Log(x / (1 - x)) }
