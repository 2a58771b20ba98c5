package scene

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
)

// fingerprintVersion changes when the same capture gets another fingerprint.
const fingerprintVersion = "vksplat capture 1"

// Fingerprint gives the SHA-256 of everything about the capture that decides the bytes of a model: names, sizes, intrinsics, lenses and poses of the
// cameras, which of them are held out, the points, and the content of every photo and mask. No path and no time is in it. All photos are read, by as many
// workers as there are cores. The capture must be in its own frame: call it before Normalise.
func (c *Capture) Fingerprint(ctx context.Context) ([sha256.Size]byte, error) {
	if c.Frame != Identity() {
		return [sha256.Size]byte{}, errors.New("scene: fingerprint capture: it has been moved to the training frame")
	}
	files, err := c.hashFiles(ctx)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	w := &hashWriter{sum: sha256.New()}
	w.text(fingerprintVersion)
	w.number(uint64(len(c.Cameras)))
	for _, cam := range c.Cameras {
		w.camera(cam, files)
		w.flag(c.HeldOut != nil && c.HeldOut[cam.photoName()])
	}
	w.flag(c.HeldOut != nil)
	w.flag(c.Synthetic)
	w.number(uint64(len(c.Points)))
	for _, p := range c.Points {
		w.floats(p.Pos[:]...)
		w.bytes(p.Color[:])
	}
	w.flush()
	return [sha256.Size]byte(w.sum.Sum(nil)), w.err
}

// hashFiles gives the hashes of all photos and masks by path.
func (c *Capture) hashFiles(ctx context.Context) (map[string][sha256.Size]byte, error) {
	files := map[string][sha256.Size]byte{}
	for _, cam := range c.Cameras {
		for _, path := range []string{cam.Path, cam.Mask} {
			if path != "" {
				files[path] = [sha256.Size]byte{}
			}
		}
	}
	paths := make([]string, 0, len(files))
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	sums, errs := make([][sha256.Size]byte, len(paths)), make([]error, len(paths))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(paths)) {
		wg.Go(func() {
			for i := range next {
				sums[i], errs[i] = hashFile(ctx, paths[i])
			}
		})
	}
	for i := 0; i < len(paths) && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("scene: fingerprint capture: %w", context.Cause(ctx))
	}
	for i, path := range paths {
		files[path] = sums[i]
	}
	return files, errors.Join(errs...)
}

// hashFile reads a whole file, in pieces between which ctx may end it.
func hashFile(ctx context.Context, path string) (sum [sha256.Size]byte, err error) {
	fail := func(err error) ([sha256.Size]byte, error) {
		return sum, &Error{Op: "fingerprint photo", Path: path, Err: trimPath(err), Kind: readKind(err), Hint: hintPhoto}
	}
	if err := regular(path); err != nil {
		return fail(err)
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close() // only read from
	h := sha256.New()
	for err == nil && ctx.Err() == nil {
		_, err = io.CopyN(h, f, 1<<22)
	}
	if err != nil && err != io.EOF {
		return fail(err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// hashWriter feeds values to a hash, each of a length that is fixed or written before it.
type hashWriter struct {
	sum hash.Hash
	buf []byte
	err error
}

func (w *hashWriter) flush() {
	w.sum.Write(w.buf) // a hash never fails
	w.buf = w.buf[:0]
}

func (w *hashWriter) bytes(b []byte) {
	if w.buf = append(w.buf, b...); len(w.buf) > 1<<16 {
		w.flush()
	}
}

func (w *hashWriter) number(n uint64) {
	w.buf = binary.LittleEndian.AppendUint64(w.buf, n)
	w.bytes(nil) // which keeps the buffer short
}

func (w *hashWriter) flag(b bool) {
	if b {
		w.number(1)
	} else {
		w.number(0)
	}
}

func (w *hashWriter) text(s string) {
	w.number(uint64(len(s)))
	w.bytes([]byte(s))
}

func (w *hashWriter) floats(values ...float64) {
	for _, v := range values {
		w.number(math.Float64bits(v))
	}
}

// camera writes everything of a camera but its paths, for which the hashes of the files stand.
func (w *hashWriter) camera(c Camera, files map[string][sha256.Size]byte) {
	w.text(c.Name)
	w.text(c.Photo)
	w.number(uint64(c.Width))
	w.number(uint64(c.Height))
	w.number(uint64(c.Model))
	w.floats(c.Fx, c.Fy, c.Cx, c.Cy)
	w.floats(c.R[:]...)
	w.floats(c.T[:]...)
	// JSON writes float64 with as many digits as tell it from every other.
	lens, err := json.Marshal(c.Lens)
	if err != nil {
		w.err = fmt.Errorf("scene: fingerprint capture: lens of %s: %w", c.Name, err)
	}
	w.text(string(lens))
	w.flag(c.MaskInverted)
	for _, path := range []string{c.Path, c.Mask} {
		w.flag(path != "")
		sum := files[path]
		w.bytes(sum[:])
	}
}
