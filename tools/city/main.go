// Command city writes a city to measure with: copies of a model in a square, as streamed SOG, with a flight over it.
//
//	go run ./tools/city -splats 50000000 -out DIR MODEL
//
// MODEL is any model whose up is -y. What is far out of its middle, as the sky, is left out. DIR/lod-meta.json is the
// city, DIR/flight.json the flight. 50 million splats of SH degree 3 take some 20 minutes of one core.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"vksplat/scene"
	"vksplat/scene/splatfile"
)

func main() {
	splats := flag.Int("splats", 50_000_000, "splats of the finest level, about")
	levels := flag.Int("levels", 8, "levels of detail")
	middle := flag.Float64("middle", 0.9, "share of the splats, along each axis, that is kept of the model")
	out := flag.String("out", "", "folder to write to")
	flag.Parse()
	if *out == "" || flag.NArg() != 1 || *splats < 1 || !(*middle > 0 && *middle <= 1) {
		flag.Usage()
		os.Exit(2)
	}
	if err := build(flag.Arg(0), *out, *splats, *levels, *middle); err != nil {
		fmt.Fprintln(os.Stderr, "city:", err)
		os.Exit(1)
	}
}

func build(file, out string, splats, levels int, middle float64) error {
	model, err := splatfile.Open(file)
	if err != nil {
		return err
	}
	all, err := splatfile.All(model)
	if err = errors.Join(err, model.Close()); err != nil {
		return err
	}
	low, high := bounds(all, middle)
	one := all.Take(within(all, low, high))
	if one.N == 0 {
		return fmt.Errorf("%s: nothing is left of it", file)
	}
	meta := model.Info().Meta
	meta.Origin = nil
	side := int(math.Ceil(math.Sqrt(float64(splats) / float64(one.N))))
	var places [][3]float64
	for i := range side * side {
		if i*one.N >= splats {
			break
		}
		x, z := float64(i%side), float64(i/side)
		places = append(places, [3]float64{x * (high[0] - low[0]), 0, z * (high[2] - low[2])})
	}
	fmt.Printf("%d copies of %d splats\n", len(places), one.N)
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	city := copies{splatfile.Memory(one, meta), places}
	o := splatfile.WriteOptions{Levels: levels, Iterations: 1}
	for last := splatfile.Gatherer(city.Gatherer); len(o.Coarser)+1 < levels && last.Info().N > 1; {
		if last, err = splatfile.Decimate(last, (last.Info().N+1)/2, out, nil); err != nil {
			return err
		}
		defer last.Close() // only read
		o.Coarser = append(o.Coarser, copies{last, places})
	}
	path := filepath.Join(out, splatfile.StreamedMain)
	if _, err := splatfile.ByName(path).Write(path, city, o); err != nil {
		return err
	}
	return writeFlight(filepath.Join(out, "flight.json"), low, high, side)
}

// copies is a model once at each of the places by which it is shifted.
type copies struct {
	splatfile.Gatherer
	places [][3]float64
}

func (c copies) Info() splatfile.Info {
	info := c.Gatherer.Info()
	info.N *= len(c.places)
	return info
}

func (c copies) Read(put func(piece *scene.Splats) error) error {
	for _, by := range c.places {
		err := c.Gatherer.Read(func(piece *scene.Splats) error {
			for i := range piece.Means {
				piece.Means[i] += float32(by[i%3])
			}
			return put(piece)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (c copies) Gather(ids []uint32, into *scene.Splats) error {
	n, own := uint32(c.Gatherer.Info().N), make([]uint32, len(ids))
	for i, id := range ids {
		own[i] = id % n
	}
	if err := c.Gatherer.Gather(own, into); err != nil {
		return err
	}
	for i, id := range ids {
		for k, by := range c.places[id/n] {
			into.Means[3*i+k] += float32(by)
		}
	}
	return nil
}

// bounds returns between which coordinates the middle of the splats is.
func bounds(s *scene.Splats, middle float64) (low, high [3]float64) {
	for axis := range 3 {
		x := make([]float32, s.N)
		for i := range x {
			x[i] = s.Means[3*i+axis]
		}
		slices.Sort(x)
		at := func(share float64) float64 { return float64(x[int(share*float64(len(x)-1))]) }
		low[axis], high[axis] = at((1-middle)/2), at((1+middle)/2)
	}
	return low, high
}

// within lists the splats that are between two corners, and no larger than the distance of these.
func within(s *scene.Splats, low, high [3]float64) (ids []int) {
	for i := range s.N {
		inside := true
		for axis := range 3 {
			x := float64(s.Means[3*i+axis])
			inside = inside && x >= low[axis] && x <= high[axis] &&
				math.Exp(float64(s.LogScales[3*i+axis])) < (high[axis]-low[axis])/4
		}
		if inside {
			ids = append(ids, i)
		}
	}
	return ids
}

// writeFlight writes keyframes of ten seconds over the city: along its diagonal from a corner, down among the blocks
// and up again.
func writeFlight(file string, low, high [3]float64, side int) error {
	wide, deep := high[0]-low[0], high[2]-low[2]
	type keyframe struct {
		Time     float64       `json:"time"`
		Position [3]float64    `json:"position"`
		Rotation [3][3]float64 `json:"rotation"`
		Fov      float64       `json:"fov"`
	}
	var keys []keyframe
	yaw := math.Atan2(wide, deep)
	for i, above := range []float64{2, 0.5, 0.2, 0.5, 2} { // of a block's side, above the blocks
		t := float64(i) / 4
		along := float64(side) * (t*0.8 - 0.1) // the city is in view to the end
		pitch := 0.15 + 0.2*above
		sp, cp, sy, cy := math.Sin(pitch), math.Cos(pitch), math.Sin(yaw), math.Cos(yaw)
		at := [3]float64{low[0] + along*wide, low[1] - above*max(wide, deep), low[2] + along*deep}
		keys = append(keys, keyframe{10 * t, at,
			[3][3]float64{{cy, -sp * sy, cp * sy}, {0, cp, sp}, {-sy, -sp * cy, cp * cy}}, 60})
	}
	text, err := json.Marshal(map[string]any{"fps": 30, "width": 1920, "height": 1080, "keyframes": keys})
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o666)
}
