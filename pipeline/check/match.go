package check

import (
	"encoding/binary"
	"slices"

	"vksplat/pipeline/ref"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// matched is a trial of pairs of photos, all with tiles of their own.
type matched struct {
	jobs        []layout.MatchJob
	descriptors []byte
	places      [][2]float32
	keys, words int // of all jobs, by 2 MatchTile, and of matches
}

// matchable makes up pairs of the given numbers of tiles. Descriptors are like those of photos; some occur twice, some
// are as long as bytes can be, some zero.
func matchable(t source, tiles ...[2]int) (m matched) {
	for _, n := range tiles {
		a, b := t.fewer(n[0]), t.fewer(n[1])
		first := uint32(len(m.places) / ref.MatchTile)
		m.jobs = append(m.jobs, layout.MatchJob{FirstA: first, TilesA: uint32(a), FirstB: first + uint32(a),
			TilesB: uint32(b), FirstKeys: uint32(m.keys), FirstMatch: uint32(m.words)})
		m.keys, m.words = m.keys+a*b, m.words+(a+b)*ref.MatchTile
		for range (a + b) * ref.MatchTile {
			m.descriptors = append(m.descriptors, descriptor(t, m.descriptors)...)
			m.places = append(m.places, [2]float32{float32(4000 * t.Float64()), float32(3000 * t.Float64())})
		}
	}
	return m
}

func descriptor(t source, before []byte) []byte {
	d := make([]byte, ref.DescriptorBytes)
	switch t.IntN(8) {
	case 0:
		copy(d, slices.Repeat([]byte{255}, t.IntN(ref.DescriptorBytes+1)))
	case 1, 2, 3:
		if n := len(before) / ref.DescriptorBytes; n > 0 {
			copy(d, before[ref.DescriptorBytes*t.IntN(n):])
			d[t.IntN(len(d))] ^= byte(t.IntN(3))
		}
	default:
		for i := range d {
			d[i] = byte(60 * t.Float64() * t.Float64())
		}
	}
	return d
}

// tiled returns descriptors as match_tiles reads them.
func tiled(d []byte) [][4]uint32 {
	out := make([][4]uint32, len(d)/16)
	for i := range out {
		row, part := i/8, i%8
		for w := range 4 {
			out[(row/ref.MatchTile*8+part)*ref.MatchTile+row%ref.MatchTile][w] =
				binary.LittleEndian.Uint32(d[16*i+4*w:])
		}
	}
	return out
}

func (m *matched) of(first, tiles uint32) (d []byte, places [][2]float32) {
	const tile = ref.MatchTile
	return m.descriptors[first*tile*ref.DescriptorBytes:][:tiles*tile*ref.DescriptorBytes],
		m.places[first*tile:][:tiles*tile]
}

func (m *matched) grid(size func(j *layout.MatchJob) (x, y uint32)) (x, y int) {
	for i := range m.jobs {
		a, b := size(&m.jobs[i])
		x, y = max(x, int(a)), max(y, int(b))
	}
	return x, y
}

// check compares the keys of all tiles with the twin's, for workgroups of either size. Where a device has no products
// of bytes, the cases of the packed variant run the other.
func (m *matched) check(t *trial, packed, guided bool) {
	var want [][2]uint32
	agreed, all := 0, 0
	for i := range m.jobs {
		j := &m.jobs[i]
		a, placesA := m.of(j.FirstA, j.TilesA)
		b, placesB := m.of(j.FirstB, j.TilesB)
		counts := func(i, k int) bool {
			ok := !guided || ref.MatchAgrees(j, placesA[i], placesB[k])
			if all++; ok {
				agreed++
			}
			return ok
		}
		want = append(want, ref.MatchTiles(a, b, counts)...)
		want = append(want, ref.MatchTiles(b, a, func(i, k int) bool { return counts(k, i) })...)
	}
	if guided && (agreed == 0 || agreed == all) {
		failf("%d of %d pairs agree with the guides", agreed, all)
	}
	x, y := m.grid(func(j *layout.MatchJob) (x, y uint32) { return j.TilesA, j.TilesB })
	packed = packed && t.d.Info().Features.PackedDot
	for _, lanes := range []uint32{256, 64} {
		t.dispatch(&shaders.MatchTiles{Jobs: in(t, m.jobs...), Descriptors: in(t, tiled(m.descriptors)...),
			Places: in(t, m.places...), NearestKeys: out[[2]uint32](t, len(want), exactly(want...)), Packed: packed,
			Spec: shaders.MatchTilesSpec{WorkgroupSize: lanes, Guided: guided}}, vk.Groups3(x, y, len(m.jobs)))
		t.run()
	}
}

// guide gives every other job a homography, and the others a fundamental matrix.
func guide(t source, m *matched) {
	for i := range m.jobs {
		j := &m.jobs[i]
		j.Planar, j.Limit = uint32(i%2), 90_000
		for k := range j.Guide {
			j.Guide[k] = float32(1e-4 * t.NormFloat64())
		}
		if j.Planar != 0 { // moves by less than the limit
			j.Guide = [9]float32{1.02, 0.03, 5, -0.03, 0.98, -7, 1e-6, -2e-6, 1}
		}
	}
}

func checkNearest(t *trial, tiles ...[2]int) {
	m := matchable(t.source, tiles...)
	keys := make([][2]uint32, 2*ref.MatchTile*m.keys)
	for i := range keys {
		product := ref.MatchOne/2 + uint32(t.IntN(40)) // many are equal
		if t.IntN(9) == 0 {
			product = uint32(t.IntN(1 << 23))
		}
		places := t.Perm(ref.MatchTile)
		keys[i] = [2]uint32{product<<7 | uint32(places[0]), uint32(t.IntN(int(product)+1))<<7 | uint32(places[1])}
		slices.SortFunc(keys[i][:], func(a, b uint32) int { return int(b) - int(a) })
	}
	least := make([]uint32, ref.MatchOne)
	for i := range least {
		least[i] = uint32(i + t.IntN(20))
	}
	var want []uint32
	for _, j := range m.jobs {
		a := 2 * ref.MatchTile * j.FirstKeys
		b, end := a+ref.MatchTile*j.TilesA*j.TilesB, a+2*ref.MatchTile*j.TilesA*j.TilesB
		want = append(want, ref.MatchNearest(keys[a:b], int(ref.MatchTile*j.TilesA), least)...)
		want = append(want, ref.MatchNearest(keys[b:end], int(ref.MatchTile*j.TilesB), least)...)
	}
	x, _ := m.grid(func(j *layout.MatchJob) (x, y uint32) { return j.TilesA + j.TilesB, 0 })
	t.dispatch(&shaders.MatchNearest{Jobs: in(t, m.jobs...), NearestKeys: in(t, keys...),
		LeastProducts: in(t, least...), Matches: out[uint32](t, len(want), exactly(want...))},
		vk.Groups3(x, len(m.jobs), 1))
	t.run()
}

func matchCases() []Case {
	var cases []Case
	for i, kernel := range []string{"match_tiles", "match_tiles_packed"} {
		packed := i == 1
		cases = append(cases, casesOf(kernel, table{
			{"a tile each", func(t *trial) { m := matchable(t.source, [2]int{1, 1}); m.check(t, packed, false) }},
			{"pairs of several tiles", func(t *trial) {
				m := matchable(t.source, [2]int{1, 3}, [2]int{2, 1}, [2]int{2, 2})
				m.check(t, packed, false)
			}},
			{"guided", func(t *trial) {
				m := matchable(t.source, [2]int{1, 2}, [2]int{1, 1}, [2]int{1, 1})
				guide(t.source, &m)
				m.check(t, packed, true)
			}},
		})...)
	}
	return append(cases, casesOf("match_nearest", table{
		{"a tile each", func(t *trial) { checkNearest(t, [2]int{1, 1}) }},
		{"pairs of several tiles", func(t *trial) { checkNearest(t, [2]int{1, 4}, [2]int{3, 1}, [2]int{2, 3}) }},
	})...)
}
