package fingerprint

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
	"time"

	"vksplat/internal/fault"
	"vksplat/internal/parallel"
	"vksplat/scene"
	"vksplat/scene/photo"
)

// fingerprintVersion changes when the same capture gets another fingerprint.
const fingerprintVersion = "vksplat capture 2"

// Fingerprint is the SHA-256 of everything about a capture that decides the bytes of a model: names, sizes, intrinsics,
// lenses and poses of the cameras, which of them are held out, the points, and the content of every photo and mask. No
// path and no time is in it, nor how cameras moved, which decides no byte unless photos are trained on as taken:
// that is in Motions.
//
// Files are hashed in the background, so that training need not wait for a slow disk to give every photo once. The
// fingerprint is nevertheless that of the files as they were when Start was called: their sizes and times of
// modification are noted then, and compared before and after a file is read. A file that was changed earlier than it
// was hashed is an error of Wait. One that is changed later does not change the fingerprint; but photos may be decoded
// again, and Changed tells. What escapes is a change that keeps both size and time, which hides from every tool that
// goes by them.
type Fingerprint struct {
	shape [sha256.Size]byte // of all but the files
	notes []fileNote        // by path
	files []int             // for the photo and the mask of each camera, in order: the place in notes, or -1
	stop  context.CancelFunc
	done  chan struct{}

	sum, content [sha256.Size]byte // once done; the latter is of the files alone
	err          error
}

// fileNote describes a file before it is read.
type fileNote struct {
	path string
	size int64
	time time.Time // of modification
}

// errChanged is the error of a file that is another one than at the start.
var errChanged = errors.New("the file changed after the run had started to read the photos")

// Start looks at every photo and mask, and then hashes them with so many workers (0: one per core) until Wait has the
// result or Close is called. The capture must be in its own frame: call it before Normalise. It may be changed
// afterwards.
func Start(c *scene.Capture, workers int) (*Fingerprint, error) {
	if c.Frame != scene.Identity() {
		return nil, errors.New("fingerprint capture: it has been moved to the training frame")
	}
	f := &Fingerprint{done: make(chan struct{})}
	var err error
	if f.shape, err = hashShape(c); err != nil {
		return nil, err
	}
	if err := f.note(c.Cameras); err != nil {
		return nil, err
	}
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	var ctx context.Context
	ctx, f.stop = context.WithCancel(context.Background())
	go func() {
		defer close(f.done)
		f.sum, f.err = f.hash(ctx, workers)
	}()
	return f, nil
}

// Wait returns the fingerprint once all files are hashed.
func (f *Fingerprint) Wait(ctx context.Context) ([sha256.Size]byte, error) {
	select {
	case <-f.done:
		return f.sum, f.err
	case <-ctx.Done():
		return [sha256.Size]byte{}, fmt.Errorf("fingerprint capture: %w", context.Cause(ctx))
	}
}

// Parts returns the hashes of what the fingerprint is made of, once Wait has returned one: everything but the files,
// and the content of photos and masks.
func (f *Fingerprint) Parts() (shape, files [sha256.Size]byte) { return f.shape, f.content }

// Done reports whether Wait would return at once.
func (f *Fingerprint) Done() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Close ends the work.
func (f *Fingerprint) Close() {
	f.stop()
	<-f.done
}

// Shape is the SHA-256 of everything of a fingerprint but the content of photos and masks: cameras, which of them are
// held out, and points. It takes a moment. The capture must be in its own frame.
func Shape(c *scene.Capture) ([sha256.Size]byte, error) {
	if c.Frame != scene.Identity() {
		return [sha256.Size]byte{}, errors.New("fingerprint capture: it has been moved to the training frame")
	}
	return hashShape(c)
}

// hashShape hashes all but the files.
func hashShape(c *scene.Capture) ([sha256.Size]byte, error) {
	w := &hashWriter{sum: sha256.New()}
	w.text(fingerprintVersion)
	w.number(uint64(len(c.Cameras)))
	for _, cam := range c.Cameras {
		w.camera(cam)
		w.flag(c.HeldOut != nil && c.HeldOut[cam.PhotoName()])
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

// Motions is the SHA-256 of how cameras moved while their photos were read out, zero if none did. The capture must be
// in its own frame.
func Motions(c *scene.Capture) (sum [sha256.Size]byte) {
	w := &hashWriter{sum: sha256.New()}
	any := false
	for i := range c.Cameras {
		cam := &c.Cameras[i]
		if w.flag(cam.Moved()); cam.Moved() {
			any = true
			w.floats(cam.Motion.Turn[:]...)
			w.floats(cam.Motion.Move[:]...)
		}
	}
	if !any {
		return sum
	}
	w.flush()
	return [sha256.Size]byte(w.sum.Sum(nil))
}

// note looks at the files of cameras.
func (f *Fingerprint) note(cams []scene.Camera) error {
	at := map[string]int{}
	for _, cam := range cams {
		for _, path := range []string{cam.Path, cam.Mask} {
			if path == "" {
				f.files = append(f.files, -1)
				continue
			}
			i, known := at[path]
			if !known {
				info, err := os.Stat(path)
				if err == nil && !info.Mode().IsRegular() { // opening a pipe without a writer would block
					err = fault.ErrNotRegular
				}
				if err != nil {
					return fingerprintError(path, err)
				}
				i = len(f.notes)
				at[path], f.notes = i, append(f.notes, fileNote{path, info.Size(), info.ModTime()})
			}
			f.files = append(f.files, i)
		}
	}
	return nil
}

func fingerprintError(path string, err error) error {
	e := &fault.Error{Op: "fingerprint photo", Path: path, Err: fault.TrimPath(err), Kind: fault.ReadKind(err),
		Hint: photo.HintPhoto}
	if errors.Is(err, errChanged) {
		e.Hint = "Leave the photos alone while training runs."
	}
	return e
}

// hash hashes all files, and then everything.
func (f *Fingerprint) hash(ctx context.Context, workers int) (sum [sha256.Size]byte, err error) {
	sums, errs := make([][sha256.Size]byte, len(f.notes)), make([]error, len(f.notes))
	parallel.Workers(len(f.notes), workers, func() func(i int) {
		return func(i int) {
			if ctx.Err() == nil {
				sums[i], errs[i] = f.notes[i].hash(ctx)
			}
		}
	})
	if ctx.Err() != nil {
		return sum, fmt.Errorf("fingerprint capture: %w", context.Cause(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return sum, err
	}
	whole, content := &hashWriter{sum: sha256.New()}, &hashWriter{sum: sha256.New()}
	whole.bytes(f.shape[:])
	for _, w := range []*hashWriter{whole, content} {
		for _, i := range f.files {
			w.flag(i >= 0)
			if i >= 0 {
				w.bytes(sums[i][:])
			}
		}
		w.flush()
	}
	f.content = [sha256.Size]byte(content.sum.Sum(nil))
	return [sha256.Size]byte(whole.sum.Sum(nil)), nil
}

// hash reads a whole file, in pieces between which ctx may end it.
func (n *fileNote) hash(ctx context.Context) (sum [sha256.Size]byte, err error) {
	file, _, err := fault.Open(n.path)
	if err != nil {
		return sum, fingerprintError(n.path, err)
	}
	defer file.Close() // only read from
	h := sha256.New()
	if err = n.same(file); err == nil {
		for err == nil && ctx.Err() == nil {
			_, err = io.CopyN(h, file, 1<<22)
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = n.same(file)
		}
	}
	if err != nil {
		return sum, fingerprintError(n.path, err)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

func (n *fileNote) same(file *os.File) error {
	info, err := file.Stat()
	if err == nil && n.differs(info) {
		err = errChanged
	}
	return err
}

func (n *fileNote) differs(info os.FileInfo) bool {
	return info.Size() != n.size || !info.ModTime().Equal(n.time)
}

// Changed is the error of the first photo or mask that is another file now than at the start, nil if there is none.
// Files that cannot be looked at are passed over: decoding them tells.
func (f *Fingerprint) Changed() error {
	for i := range f.notes {
		n := &f.notes[i]
		if info, err := os.Stat(n.path); err == nil && n.differs(info) {
			return fingerprintError(n.path, errChanged)
		}
	}
	return nil
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

// camera writes everything of a camera but its files.
func (w *hashWriter) camera(c scene.Camera) {
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
		w.err = fmt.Errorf("fingerprint capture: lens of %q: %w", c.Name, err)
	}
	w.text(string(lens))
	w.flag(c.MaskInverted)
	if c.MaskGrow > 0 { // records of earlier versions stay as they are
		w.number(uint64(c.MaskGrow))
	}
	if c.Depths[1] > 0 {
		w.floats(c.Depths[:]...)
	}
}
