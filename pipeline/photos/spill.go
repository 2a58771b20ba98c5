package photos

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"vksplat/internal/fault"
	"vksplat/scene"
)

// spillPattern is the name of a disk cache; the asterisk stands for random digits.
const spillPattern = "vksplat-photos-*.cache"

// spill is the disk cache: decoded photos in one file, each at a place of its own that it gets when it is first
// written.
type spill struct {
	file *os.File
	name string // to be removed at the end; "": it has no name any more
	most int64  // ceiling of the file

	mu     sync.Mutex
	end    int64
	at     []int64 // by view: offset, or -1
	ready  []bool  // by view: written
	masked []bool  // by view: a mask follows the pixels
	off    bool    // after a failure
}

// openSpill makes the disk cache of n photos that take total bytes in a folder, which is made if it is not there.
// Caches that killed runs left behind are removed.
func openSpill(dir string, most, total int64, n int) (*spill, error) {
	fail := func(err error) error {
		return &fault.Error{Op: "open image cache", Path: dir, Err: err, Kind: fault.ErrTryAgain,
			Hint: "Name a folder on a disk with room with " + fault.Setting("image-cache") + "."}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fail(err)
	}
	// A cache that is in use loses its name at most: where files in use have names that can be removed, caches have
	// none.
	old, _ := os.ReadDir(dir)
	for _, e := range old {
		if is, _ := filepath.Match(spillPattern, e.Name()); is {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
	if most <= 0 || most > total {
		most = total
	}
	if free, ok := diskFree(dir); ok && free/10*9 < most {
		most = free / 10 * 9
	}
	file, err := os.CreateTemp(dir, spillPattern)
	if err != nil {
		return nil, fail(err)
	}
	s := &spill{file: file, name: file.Name(), most: most, at: make([]int64, n), ready: make([]bool, n),
		masked: make([]bool, n)}
	for i := range s.at {
		s.at[i] = -1
	}
	// Without a name the file goes when the process goes, however that ends. Windows keeps the name of an open file.
	if os.Remove(s.name) == nil {
		s.name = ""
	}
	return s, nil
}

// has reports whether a photo can be read.
func (s *spill) has(view int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready[view] && !s.off
}

// size returns the bytes written.
func (s *spill) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// stop ends the use of the file after a failure.
func (s *spill) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.off = true
}

// place gives a photo its place, or -1 when it was written before or nothing is left.
func (s *spill) place(view int, bytes int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off || s.at[view] >= 0 || bytes > s.most-s.end {
		return -1
	}
	s.at[view] = s.end
	s.end += bytes
	return s.at[view]
}

// write keeps a photo, if it is new and there is room.
func (s *spill) write(view int, m scene.Image) error {
	mask := maskBytes(m.Mask)
	at := s.place(view, int64(len(m.Pix)+len(mask)))
	if at < 0 {
		return nil
	}
	if _, err := s.file.WriteAt(m.Pix, at); err != nil {
		return fmt.Errorf("write image cache: %w", err)
	}
	if _, err := s.file.WriteAt(mask, at+int64(len(m.Pix))); err != nil {
		return fmt.Errorf("write image cache: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[view], s.masked[view] = true, m.Mask != nil
	return nil
}

// read returns a photo that write kept, in the memory of old if that has the right shape.
func (s *spill) read(view int, cam *scene.Camera, old scene.Image) (scene.Image, error) {
	pixels := cam.Width * cam.Height
	m := scene.Image{Width: cam.Width, Height: cam.Height, Pix: old.Pix}
	if cap(m.Pix) < 4*pixels {
		m.Pix = make([]uint8, 4*pixels)
	}
	m.Pix = m.Pix[:4*pixels]
	if s.masked[view] {
		if m.Mask = old.Mask; cap(m.Mask) < MaskWords(pixels) {
			m.Mask = make([]uint32, MaskWords(pixels))
		}
		m.Mask = m.Mask[:MaskWords(pixels)]
	}
	n, err := s.file.ReadAt(m.Pix, s.at[view])
	if n == len(m.Pix) && m.Mask != nil {
		b := make([]byte, 4*len(m.Mask))
		if n, err = s.file.ReadAt(b, s.at[view]+int64(len(m.Pix))); n == len(b) {
			for i := range m.Mask {
				m.Mask[i] = binary.LittleEndian.Uint32(b[4*i:])
			}
			return m, nil
		}
	} else if n == len(m.Pix) {
		return m, nil
	}
	return m, fmt.Errorf("read image cache: %w", errors.Join(err, io.ErrUnexpectedEOF))
}

// maskBytes returns a mask as it stands in the file.
func maskBytes(words []uint32) []byte {
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func (s *spill) close() error {
	err := s.file.Close()
	if s.name != "" {
		err = errors.Join(err, os.Remove(s.name))
	}
	if err != nil {
		return fmt.Errorf("close image cache: %w", err)
	}
	return nil
}
