package matching

import (
	"errors"

	"vksplat/internal/parallel"
	"vksplat/vk"
)

// Bytes of a tile's descriptors, and of its places.
const (
	tileBytes  = tileRows * descriptorBytes
	placeBytes = tileRows * 8
)

func slotBytes(tiles int) int64 { return int64(tiles) * (tileBytes + placeBytes) }

// store has photos on the device in slots of one size: those that batches needed last.
type store struct {
	dev         *vk.Device
	photos      []Photo
	tiles       int      // of a slot
	descriptors vk.View  // [slots][tiles][8][MatchTile] 16 bytes
	places      vk.View  // [slots][tiles][MatchTile][2]float32
	staging     vk.View  // of some slots: first all their descriptors, then all their places
	room        int      // slots in staging
	slotOf      []int    // by photo; -1: none
	slots       []holder // by slot
	wanted      []int    // slots that are to be filled
}

// holder is what is in a slot, and the batch that needed it last.
type holder struct{ photo, batch int }

const stagingBytes = 32 << 20

func newStore(d *vk.Device, photos []Photo, tiles, slots int) (s *store, err error) {
	s = &store{dev: d, photos: photos, tiles: tiles, room: max(2, min(slots, int(stagingBytes/slotBytes(tiles)))),
		slotOf: make([]int, len(photos)), slots: make([]holder, slots)}
	for i := range s.slotOf {
		s.slotOf[i] = -1
	}
	for i := range s.slots {
		s.slots[i] = holder{photo: -1}
	}
	for _, b := range []struct {
		to    *vk.View
		kind  vk.MemoryKind
		bytes int64
	}{{&s.descriptors, vk.DeviceLocal, int64(slots*tiles) * tileBytes},
		{&s.places, vk.DeviceLocal, int64(slots*tiles) * placeBytes},
		{&s.staging, vk.Upload, int64(s.room) * slotBytes(tiles)}} {
		if *b.to, err = d.Alloc(b.kind, b.bytes, "descriptors"); err != nil {
			return s, err
		}
	}
	return s, nil
}

// want reserves a slot for a photo, for a batch whose number grows from batch to batch and is not 0. It reports false
// if there is no room, and then the batch must do without.
func (s *store) want(photo, batch int) bool {
	slot := s.slotOf[photo]
	if slot < 0 {
		slot = 0
		for i := range s.slots {
			if s.slots[i].batch < s.slots[slot].batch {
				slot = i
			}
		}
		if s.slots[slot].batch == batch || len(s.wanted) == s.room {
			return false
		}
		if old := s.slots[slot].photo; old >= 0 {
			s.slotOf[old] = -1
		}
		s.slotOf[photo], s.slots[slot].photo = slot, photo
		s.wanted = append(s.wanted, slot)
	}
	s.slots[slot].batch = batch
	return true
}

// load fills the slots that are wanted, after what was submitted before.
func (s *store) load() error {
	if len(s.wanted) == 0 {
		return nil
	}
	host, r := s.staging.Host(), vk.NewRecorder(s.dev)
	descriptors, places := int64(s.tiles)*tileBytes, int64(s.tiles)*placeBytes
	parallel.For(len(s.wanted), func(i int) {
		p := &s.photos[s.slots[s.wanted[i]].photo]
		layTiles(host[int64(i)*descriptors:], p)
		to := vk.Cast[[2]float32](s.staging.Slice(int64(s.room)*descriptors+int64(i)*places, places))
		copy(vk.Host(to), p.Places)
	})
	for i, slot := range s.wanted {
		tiles := int64(s.photos[s.slots[slot].photo].tiles())
		r.Copy(s.descriptors.Slice(int64(slot)*descriptors, tiles*tileBytes),
			s.staging.Slice(int64(i)*descriptors, tiles*tileBytes))
		r.Copy(s.places.Slice(int64(slot)*places, tiles*placeBytes),
			s.staging.Slice(int64(s.room)*descriptors+int64(i)*places, tiles*placeBytes))
	}
	s.wanted = s.wanted[:0]
	return s.dev.RunOnce(r, "load descriptors")
}

// layTiles lays a photo's descriptors out as match_tiles reads them: [tiles][8][MatchTile] 16 bytes, zeros behind the
// last.
func layTiles(to []byte, p *Photo) {
	const part = descriptorBytes / 8
	for t := range p.tiles() {
		for k := range 8 {
			for row := range tileRows {
				from := (t*tileRows+row)*descriptorBytes + k*part
				if from < len(p.Descriptors) {
					copy(to[:part], p.Descriptors[from:])
				} else {
					clear(to[:part])
				}
				to = to[part:]
			}
		}
	}
}

func (s *store) close() error {
	if s == nil {
		return nil
	}
	return errors.Join(s.dev.Free(s.descriptors), s.dev.Free(s.places), s.dev.Free(s.staging))
}
