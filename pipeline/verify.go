package pipeline

import (
	"fmt"

	"vksplat/pipeline/recipe"
	"vksplat/shaders"
	"vksplat/shaders/layout"
	"vksplat/vk"
)

// verifyVariable, set to 1, makes every unit check what its passes wrote: slow, to find a wrong pass.
const verifyVariable = "VKSPLAT_VERIFY"

// verifyChecks is the most checks of a unit. Bands share theirs, and so do chunks.
const verifyChecks = 32

// verifier holds what the checks of a frame's units found.
type verifier struct {
	found vk.Slice[uint32] // [verifyChecks] first element that is wrong, by check; mapped
	names [recipe.NKinds][]verifyCheck
}

// verifyCheck is a check: after which pass it looks at which buffer for what.
type verifyCheck struct {
	pass, buffer string
	mode         uint32
}

var verifyModes = map[uint32]string{
	layout.VerifyFinite: "it is not a finite number", layout.VerifyFiniteAt: "it is not a finite number",
	layout.VerifyFiniteRows:    "the splat is not made of finite numbers",
	layout.VerifyFiniteHalves:  "the splat is not made of finite numbers",
	layout.VerifyFiniteBfloats: "the splat is not made of finite numbers",
	layout.VerifySorted:        "it is larger than the next",
	layout.VerifySortedAt:      "it is culled or larger than the next",
	layout.VerifyDistinct:      "it is out of range or occurs twice",
	layout.VerifyOffsets:       "offsets do not rise from 0 to the total",
	layout.VerifyGroups:        "it lies outside its tile's run",
}

func (x *verifier) allocate(e *setup) (err error) {
	if e.verify {
		x.found, err = vk.Make[uint32](e.dev, vk.Readback, verifyChecks, "found")
	}
	return err
}

func (x *verifier) free(e *setup) {
	if !x.found.IsZero() {
		e.dev.Free(x.found.View)
	}
}

// judge returns an error for the first check of a finished unit that found something.
func (x *verifier) judge(u recipe.Unit) error {
	if x.found.IsZero() {
		return nil
	}
	for i, at := range vk.Host(x.found)[:len(x.names[u.Kind])] {
		if c := x.names[u.Kind][i]; at != layout.Culled {
			return fmt.Errorf("verify step %d (%s): after pass %s: element %d of %s: %s", u.Step+1, u.Kind,
				c.pass, at, c.buffer, verifyModes[c.mode])
		}
	}
	return nil
}

// startVerify begins the checks of a unit.
func (v *view) startVerify(k recipe.Kind) {
	v.kind, v.verifier = k, &v.f.verifier
	v.verifier.names[k] = nil
	if v.s.verify {
		v.r.Fill(v.verifier.found.View, layout.Culled)
	}
}

// verifyTarget is the buffer that one check reads.
type verifyTarget struct {
	data, index vk.View
	count       uint32 // as in verify.comp
	stride      int    // words of an element
	bound       uint32 // as in verify.comp
}

// check records one check. A check of the same pass, buffer and mode shares its result.
func (v *view) check(what verifyCheck, t verifyTarget) {
	if !v.s.verify {
		return
	}
	if v.s.hooks.sabotage != nil {
		v.s.hooks.sabotage(v, what.buffer)
	}
	names := &v.verifier.names[v.kind]
	number := len(*names)
	for i, c := range *names {
		if c == what {
			number = i
		}
	}
	if number == len(*names) {
		*names = append(*names, what)
	}
	marks := vk.Cast[uint32](v.s.args.View) // not touched
	if what.mode == layout.VerifyDistinct {
		marks = vk.ScratchOf[uint32](v.r, "marks", int(t.data.Size()/4))
		v.r.Fill(marks.View, 0)
	}
	if t.index.IsZero() {
		t.index = t.data // not read
	}
	v.r.Dispatch(&shaders.Verify{
		Params: v.f.params, Counters: v.s.counters, Data: vk.Cast[uint32](t.data), Index: vk.Cast[uint32](t.index),
		Marks: marks, Found: v.verifier.found,
		Push: shaders.VerifyPush{Mode: what.mode, Count: t.count, Stride: uint32(max(t.stride, 1)), Bound: t.bound,
			Check: uint32(number)},
	}, vk.Groups(64))
}

func (v *view) verifyProjection() {
	rank := v.splatFromRank.View
	v.check(verifyCheck{"sort_depth", "splat_from_rank", layout.VerifyDistinct},
		verifyTarget{data: rank, count: layout.NVisible, bound: layout.NActive})
	v.check(verifyCheck{"sort_depth", "depth_keys", layout.VerifySortedAt},
		verifyTarget{data: v.depthKeys.View, index: rank, count: layout.NVisible})
	v.check(verifyCheck{"project", "shapes", layout.VerifyFiniteAt}, verifyTarget{data: v.shapes.View, index: rank,
		count: layout.NVisible, stride: 8})
	v.check(verifyCheck{"project", "paints", layout.VerifyFiniteAt}, verifyTarget{data: v.paints.View, index: rank,
		count: layout.NVisible, stride: 4})
}

func (v *view) verifyIsects() {
	ids, offsets := v.tileIDs.View, v.tileOffsets.View
	v.check(verifyCheck{"scan_isects", "first_isect", layout.VerifySorted},
		verifyTarget{data: v.firstIsect.View, count: layout.NVisible})
	v.check(verifyCheck{"sort_tiles", "tile_ids", layout.VerifySorted}, verifyTarget{data: ids, count: layout.NIsects})
	v.check(verifyCheck{"sort_tiles", "slot_from_isect", layout.VerifyDistinct},
		verifyTarget{data: v.slotFromIsect.View, count: layout.NIsects, bound: layout.NIsects})
	v.check(verifyCheck{"tile_offsets", "tile_offsets", layout.VerifyOffsets},
		verifyTarget{data: offsets, count: layout.CountTiles, bound: layout.NIsects})
	v.check(verifyCheck{"tile_offsets", "tile_ids", layout.VerifyGroups},
		verifyTarget{data: ids, index: offsets, count: layout.NIsects})
	v.check(verifyCheck{"tile_offsets", "tile_order", layout.VerifyDistinct},
		verifyTarget{data: v.tileOrder.View, count: layout.CountTiles, bound: layout.CountTiles})
}

func (v *view) verifyImage() {
	v.check(verifyCheck{"rasterize", "render", layout.VerifyFinite}, verifyTarget{data: v.render.View,
		count: layout.CountPixels, stride: 4})
	v.check(verifyCheck{"loss", "v_render", layout.VerifyFinite}, verifyTarget{data: v.vShown.View,
		count: layout.CountPixels, stride: 4})
}

func (v *view) verifySlots() {
	v.check(verifyCheck{"rasterize_bwd", "v_slots", layout.VerifyFinite},
		verifyTarget{data: v.vSlots.View, count: layout.NIsects, stride: 9})
}

func (v *view) verifyGradients() {
	rank := v.splatFromRank.View
	v.check(verifyCheck{"reduce_slots", "v_projected", layout.VerifyFiniteAt},
		verifyTarget{data: v.vProjected.View, index: rank, count: layout.NVisible, stride: 9})
	if words := v.s.besideWords(); words > 0 {
		v.check(verifyCheck{"reduce_slots", "v_beside", layout.VerifyFiniteAt},
			verifyTarget{data: v.vBeside.View, index: rank, count: layout.NVisible, stride: words})
	}
}

// verifyModel checks parameters, moments and statistics after pass.
func (v *view) verifyModel(pass string) {
	m := v.s.model
	for _, c := range m.chunks {
		floats := func(row, end int, mode uint32) {
			v.check(verifyCheck{pass, "chunk", mode}, verifyTarget{data: c.At(row*c.splats, (end-row)*c.splats).View,
				count: layout.NSplats, stride: c.splats, bound: uint32(c.first)})
		}
		if !m.Mixed {
			floats(0, m.NRows(), layout.VerifyFiniteRows)
			continue
		}
		floats(0, layout.RowSh, layout.VerifyFiniteRows)
		floats(layout.RowSh, m.First, layout.VerifyFiniteHalves)
		floats(m.First, m.Stats, layout.VerifyFiniteBfloats)
		floats(m.Stats, m.NRows(), layout.VerifyFiniteRows)
	}
}
