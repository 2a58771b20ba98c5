package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"time"

	"vksplat/internal/geom"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/adjust"
	"vksplat/scene/calibrate"
	"vksplat/scene/colmap"
)

func main() {
	dir := os.Args[1]
	model := os.Args[2]
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	var cams map[uint32]colmap.Camera
	must(colmap.BinaryModel.Read(filepath.Join(dir, "cameras.bin"), func(r io.Reader) (err error) {
		cams, err = colmap.BinaryModel.Cameras(r)
		return err
	}))
	p := &adjust.Problem{}
	lens := map[uint32]int{}
	var names []string
	pts := map[uint64]int32{}
	must(colmap.BinaryModel.Read(filepath.Join(dir, "points3D.bin"), func(r io.Reader) error {
		return colmap.BinaryModel.Tracks(r, func(t *colmap.Track) {
			pts[t.ID] = int32(len(p.Points))
			p.Points = append(p.Points, t.Pos)
		})
	}))
	must(colmap.EachImage(dir, func(img *colmap.Image, seen []colmap.Seen) {
		l, ok := lens[img.Camera]
		if !ok {
			l = len(p.Lenses)
			lens[img.Camera] = l
			k := cams[img.Camera].Lens
			if model == "OPENCV" && k.Model == scene.LensPinhole {
				k.Model = scene.LensOpenCV
				k.Params = append(k.Params, 0, 0, 0, 0)
			}
			L := adjust.Lens{Calibration: k}
			info, _ := k.Model.Info()
			for i := 0; i < k.Model.Calibrated(); i++ {
				L.Free[i] = i < info.Focals || i >= info.Focals+2
			}
			p.Lenses = append(p.Lenses, L)
		}
		r, _ := geom.RotationFromQuat(img.Quat)
		for _, s := range seen {
			if j, ok := pts[s.Point]; ok {
				p.Observations = append(p.Observations, adjust.Observation{int32(len(p.Poses)), j, s.X, s.Y})
			}
		}
		names = append(names, img.Name)
		p.Poses = append(p.Poses, adjust.Pose{R: r, T: img.T, Lens: l})
	}))
	fmt.Println(len(p.Poses), "poses", len(p.Points), "points", len(p.Observations), "obs", len(p.Lenses), "lenses")
	if model == "RUN" {
		heldOut := map[string]bool{}
		sorted := slices.Clone(names)
		slices.Sort(sorted)
		for i, n := range sorted {
			heldOut[n] = i%8 == 0
		}
		if os.Getenv("NOISE") != "" { // a camera of its own for each photo
			var own []adjust.Lens
			for i := range p.Poses {
				l := p.Lenses[p.Poses[i].Lens]
				l.Params = slices.Clone(l.Params)
				b := philox.Block([4]uint32{uint32(i)}, philox.Key(5))
				r, sn, _ := philox.NormalPair(philox.Uniform(b[0]), philox.Uniform(b[1]))
				f := 1 + 0.02*r*sn
				l.Params[0] *= f
				if l.Model == scene.LensPinhole || l.Model == scene.LensOpenCV {
					l.Params[1] *= f
				}
				p.Poses[i].Lens = len(own)
				own = append(own, l)
			}
			p.Lenses = own
		}
		n := &calibrate.Network{Seen: p.Observations, Points: p.Points}
		for _, l := range p.Lenses {
			n.Lenses = append(n.Lenses, l.Calibration)
		}
		n.IDs = make([]uint64, len(p.Points))
		for id, i := range pts {
			n.IDs[i] = id
		}
		for i, q := range p.Poses {
			n.Photos = append(n.Photos, calibrate.Photo{HeldOut: heldOut[names[i]], Name: names[i], R: q.R, T: q.T, Lens: q.Lens})
		}
		t := time.Now()
		res, err := calibrate.Run(context.Background(), n)
		must(err)
		for _, s := range res.Steps {
			fmt.Printf("%-16s %+.2f%% kept %v steps %d\n", s.Name, 100*s.Share, s.Kept, s.Steps)
		}
		fmt.Println(time.Since(t), res.Lens[len(res.Lens)/2], len(res.Lens))
		if res.Photos != nil && len(os.Args) > 3 {
			type photo struct {
				Q [4]float64
				T [3]float64
			}
			out := struct {
				Lens   []scene.Calibration
				Photos map[string]photo
				Points map[uint64][3]float64
			}{res.Lens, map[string]photo{}, map[uint64][3]float64{}}
			for _, p := range res.Photos {
				out.Photos[p.Name] = photo{geom.QuatFromRotation(p.R), p.T}
			}
			for i, x := range res.Points {
				out.Points[n.IDs[i]] = x
			}
			b, err := json.Marshal(out)
			must(err)
			must(os.WriteFile(os.Args[3], b, 0o666))
		}
		return
	}
	var loss adjust.Loss
	if len(os.Args) > 3 {
		loss = adjust.Cauchy(1)
	}
	pf, _ := os.Create("/tmp/ba.prof")
	pprof.StartCPUProfile(pf)
	defer pprof.StopCPUProfile()
	t := time.Now()
	s, err := adjust.Solve(context.Background(), p, adjust.Options{Gain: 1e-7, Loss: loss, Steps: 100})
	must(err)
	fmt.Printf("%+v %v\n", s, time.Since(t))
	for i, l := range p.Lenses {
		if i < 3 {
			fmt.Println(l.Model, l.Params)
		}
	}
}
