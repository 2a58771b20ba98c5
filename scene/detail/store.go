package detail

import (
	"runtime"
	"slices"
	"sync"

	"vksplat/scene"
)

// store reads parts, those that are needed next on several cores ahead of time, within a limit of memory.
type store struct {
	m     *Model
	limit int64 // bytes of read-ahead parts not yet used, and as many of folders

	mu      sync.Mutex
	changed *sync.Cond
	wanted  []int          // what was said to Ahead and is not begun
	parts   map[int]*ahead // begun or read, and not taken
	bytes   int64          // of those, twice while they are read: they are turned into the frame
	working int            // goroutines
	ended   bool

	folders []folderUse
	kept    int64 // bytes of folders that are decoded, and what decoding takes beside them
	uses    int
}

// ahead is a part that was asked for ahead of time.
type ahead struct {
	splats *scene.Splats
	err    error
	done   bool
}

type folderUse struct {
	readers int
	last    int  // the number of its last use
	there   bool // decoded, or a reader does that
	decoded bool
}

// Use makes the model ready: it is drawn in a frame, by a device whose pages hold that many splats. LimitRAM says what
// it may take.
func (m *Model) Use(frame scene.Frame, origin [3]float64, page int) {
	m.frame, m.origin, m.page = frame, origin, page
	m.store = &store{m: m, parts: map[int]*ahead{}, folders: make([]folderUse, len(m.Folders))}
	m.changed = sync.NewCond(&m.store.mu)
}

// LimitRAM says how many bytes of RAM parts and folders take, about. They take no less than LeastRAM.
func (s *store) LimitRAM(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit = bytes / 2
}

// LeastRAM is about what reading takes of RAM: the largest part, twice while it is turned into the frame, beside the
// largest folder while it is decoded.
func (s *store) LeastRAM() int64 {
	part, folder := int64(0), int64(0)
	for i := range s.m.parts {
		part = max(part, s.partBytes(i))
	}
	for _, f := range s.m.Folders {
		folder = max(folder, f.LoadBytes())
	}
	return 2*part + folder
}

func (m *Model) Close() error {
	if s := m.store; s != nil {
		s.mu.Lock()
		s.wanted, s.ended = nil, true
		for s.working > 0 {
			s.changed.Wait()
		}
		s.mu.Unlock()
	}
	return m.Leaves.Close()
}

func (s *store) partBytes(part int) int64 {
	return 4 * int64(s.m.parts[part].n) * int64(scene.SplatNumbers(s.m.Degree()))
}

// Ahead says which parts are going to be read, the first ones first, in place of what was said before.
func (s *store) Ahead(parts []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = s.wanted[:0]
	still := make(map[int]bool, len(parts))
	for _, part := range parts {
		still[part] = true
		if s.parts[part] == nil {
			s.wanted = append(s.wanted, part)
		}
	}
	for part, a := range s.parts {
		if a.done && !still[part] {
			s.drop(part)
		}
	}
	s.start()
}

func (s *store) drop(part int) {
	delete(s.parts, part)
	s.bytes -= s.partBytes(part)
}

// start has goroutines read what is wanted, as far as there is room, each folder that is to be decoded by one of them.
// Where there is no room at all one part is read, or one folder decoded, at a time.
func (s *store) start() {
	for !s.ended && s.working < runtime.GOMAXPROCS(0) {
		at := slices.IndexFunc(s.wanted, func(part int) bool {
			f := &s.folders[s.m.parts[part].folder]
			return f.decoded || !f.there
		})
		if at < 0 {
			return
		}
		part := s.wanted[at]
		if s.bytes > 0 && s.bytes+2*s.partBytes(part) > s.limit || !s.roomFor(s.m.parts[part].folder) {
			return
		}
		s.wanted = slices.Delete(s.wanted, at, at+1)
		s.begin(part)
		s.working++
		go func() {
			s.read(part)
			s.mu.Lock()
			s.working--
			s.start()
			s.changed.Broadcast()
			s.mu.Unlock()
		}()
	}
}

func (s *store) roomFor(folder int) bool {
	if s.folders[folder].there {
		return true
	}
	need := s.m.Folders[folder].LoadBytes()
	s.evict(need)
	return s.kept == 0 || s.kept+need <= s.limit
}

// begin notes that a part is being read, which keeps its folder decoded.
func (s *store) begin(part int) {
	s.parts[part] = &ahead{}
	s.bytes += 2 * s.partBytes(part)
	folder := s.m.parts[part].folder
	f := &s.folders[folder]
	if s.uses++; !f.there {
		s.roomFor(folder)
		f.there = true
		s.kept += s.m.Folders[folder].LoadBytes()
	}
	f.readers, f.last = f.readers+1, s.uses
}

func (s *store) read(part int) {
	at := s.m.parts[part]
	folder := s.m.Folders[at.folder]
	var splats *scene.Splats
	err := folder.Load()
	s.mu.Lock()
	if f := &s.folders[at.folder]; !f.decoded {
		f.decoded = true
		s.kept -= folder.LoadBytes() - folder.Bytes()
	}
	s.start() // others read of it
	s.mu.Unlock()
	if err == nil {
		splats, err = folder.Read(at.first, at.n, s.m.Degree())
	}
	if err == nil {
		splats = splats.FromCapture(s.m.frame, s.m.origin)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	*s.parts[part] = ahead{splats, err, true}
	s.bytes -= s.partBytes(part)
	s.release(at.folder)
	s.changed.Broadcast()
}

// Read returns the splats of a part, in the frame in which it is drawn.
func (s *store) Read(part int) (*scene.Splats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parts[part] == nil { // not yet begun: it does not wait for room
		s.wanted = slices.DeleteFunc(s.wanted, func(other int) bool { return other == part })
		s.begin(part)
		s.mu.Unlock()
		s.read(part)
		s.mu.Lock()
	}
	a := s.parts[part]
	for !a.done {
		s.changed.Wait()
	}
	s.drop(part)
	s.start()
	return a.splats, a.err
}

func (s *store) release(folder int) {
	s.folders[folder].readers--
	s.evict(0)
}

// evict forgets unused folders until there is room for need bytes more: first what was read the longest time
// ago.
func (s *store) evict(need int64) {
	for s.kept+need > s.limit {
		oldest := -1
		for i, f := range s.folders {
			if f.there && f.readers == 0 && (oldest < 0 || f.last < s.folders[oldest].last) {
				oldest = i
			}
		}
		if oldest < 0 {
			return
		}
		s.folders[oldest].there, s.folders[oldest].decoded = false, false
		s.kept -= s.m.Folders[oldest].Bytes()
		s.m.Folders[oldest].Drop()
	}
}
