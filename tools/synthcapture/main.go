// Command synthcapture writes large captures of the made-up scene of `vksplat demo`: hundreds of JPEG photos of many
// megapixels and a COLMAP model of millions of points, in about a minute on sixteen cores. They are for measuring
// memory and speed. Same options, same bytes on one architecture.
//
//	go run ./tools/synthcapture -photos 300 -width 4000 -height 3000 -points 100000 -out DIR
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"os"
	"path/filepath"
	"strings"

	"vksplat/internal/parallel"
	"vksplat/internal/philox"
	"vksplat/scene"
	"vksplat/scene/colmap"
	"vksplat/scene/picture"
	"vksplat/scene/synth"
)

type options struct {
	photos, width, height int
	points                int
	shrink                int
	noise                 int
	quality               int
	seed                  uint64
	city, passers, open   bool
	far                   bool
	lens                  string
	shutter               float64
	tracks                float64
	out                   string
}

func main() {
	var o options
	flag.IntVar(&o.photos, "photos", 300, "photos to write")
	flag.IntVar(&o.width, "width", 4000, "pixels of a photo from left to right")
	flag.IntVar(&o.height, "height", 3000, "pixels from top to bottom")
	flag.IntVar(&o.points, "points", 100_000, "points of the model")
	flag.IntVar(&o.shrink, "shrink", 8, "photos are drawn so many times smaller and enlarged")
	flag.IntVar(&o.noise, "noise", 20, "largest noise of a pixel, of 255: it makes files as large as those of cameras")
	flag.IntVar(&o.quality, "quality", 90, "quality of the JPEG files")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the cameras, the points and the noise")
	flag.BoolVar(&o.city, "city", false,
		"a city that is flown over, in place of the scene of the demo")
	flag.BoolVar(&o.passers, "passers", false, "people walk through a third of the photos, none of every eighth")
	flag.BoolVar(&o.open, "open", false,
		"the sky is out of reach: no point lies on it, and it looks the same from all cameras")
	flag.BoolVar(&o.far, "far", false,
		"also photos from off the path, named in far.txt, with exact depths in depths: to be held out, at 0.5, 1 and 2 "+
			"radii of the path and 15, 30 and 45 degrees above its highest part; the sky is that of -open")
	flag.StringVar(&o.lens, "lens", "",
		"`NAME` of a lens that bends the photos: opencv, rational, fisheye, wide or prism")
	flag.Float64Var(&o.shutter, "shutter", 0,
		"cameras turn by up to `X` radians, and move by that share of their distance, while rows are read out; every "+
			"eighth stands still. The model is a transforms.json, as nerfstudio's")
	flag.Float64Var(&o.tracks, "tracks", -1,
		"which photos show each point, and where, with Gaussian noise of `PX` pixels; below 0: not in the model")
	flag.StringVar(&o.out, "out", "", "folder to write to")
	flag.Parse()
	if err := o.write(); err != nil {
		fmt.Fprintln(os.Stderr, "synthcapture:", err)
		os.Exit(1)
	}
}

// lenses are made up, each stronger than most are.
var lenses = map[string]*synth.Lens{
	"opencv": {Model: scene.LensOpenCV, Focal: 0.6, Distortion: []float64{-0.28, 0.07, 0.001, -0.0005}},
	"rational": {Model: scene.LensFullOpenCV, Focal: 0.6,
		Distortion: []float64{0.3, 0.02, 0.001, -0.0005, 0, 0.6, 0.1, 0}},
	"fisheye": {Model: scene.LensOpenCVFisheye, Focal: 0.4, Distortion: []float64{-0.03, 0.005, -0.002, 0.0002}},
	// 205 degrees from left to right
	"wide": {Model: scene.LensOpenCVFisheye, Focal: 0.27, Distortion: []float64{0.02, -0.002, 0.0003, 0}},
	"prism": {Model: scene.LensThinPrism, Focal: 0.5,
		Distortion: []float64{-0.05, 0.01, 0.002, -0.001, 0, 0, 0.004, -0.003}},
}

// check refuses what package scene does not.
func (o *options) check() error {
	switch {
	case o.out == "":
		return errors.New("name the folder to write, as in -out DIR")
	case o.shrink < 1 || o.noise < 0 || o.noise > 127 || o.quality < 1 || o.quality > 100:
		return fmt.Errorf("shrink %d, noise %d, quality %d: want 1 or more, 0 to 127, 1 to 100", o.shrink, o.noise,
			o.quality)
	case o.lens != "" && lenses[o.lens] == nil:
		return fmt.Errorf("lens %q: want opencv, rational, fisheye, wide or prism", o.lens)
	case o.tracks >= 0 && o.shutter > 0:
		return errors.New("a transforms.json, which -shutter needs, has no tracks: leave -tracks out")
	case min(o.photos, o.width, o.height, o.points) < 1:
		return errors.New("photos, width, height and points are positive")
	}
	return nil
}

func (o *options) write() error {
	if err := o.check(); err != nil {
		return err
	}
	s, err := synth.New(synth.Options{Images: o.photos, Width: o.width, Height: o.height, Points: o.points,
		Seed: o.seed, City: o.city, Passers: o.passers, Open: o.open, Lens: lenses[o.lens],
		Shutter: o.shutter, Far: o.far})
	if err != nil {
		return err
	}
	cams := s.Cameras()
	for i := range cams {
		cams[i].Name = strings.TrimSuffix(cams[i].Name, filepath.Ext(cams[i].Name)) + ".jpg"
	}
	images := filepath.Join(o.out, "images")
	if err := os.MkdirAll(images, 0o777); err != nil {
		return err
	}
	err = each(len(cams), func(i int) error {
		return writeFile(filepath.Join(images, cams[i].Name), func(w io.Writer) error {
			return jpeg.Encode(w, o.photo(s, i), &jpeg.Options{Quality: o.quality})
		})
	})
	if err != nil {
		return err
	}
	if err := o.writeFar(s, cams); err != nil {
		return err
	}
	points := s.Points()
	return s.WriteModel(o.out, cams, points, o.sightings(s, points))
}

// sightings returns what each photo shows of the points, in pixels with noise; nil without tracks.
func (o *options) sightings(s *synth.Capture, points []scene.Point) [][]colmap.Seen {
	if o.tracks < 0 {
		return nil
	}
	found := make([][]colmap.Seen, len(s.Cameras()))
	parallel.For(o.photos, func(i int) {
		find, stream := s.Find(i), newNoise(o.seed, -1-i)
		for p := range points {
			if x, y, seen := find(points[p].Pos); seen {
				r, sin, cos := philox.NormalPair(stream.uniform(), stream.uniform())
				found[i] = append(found[i], colmap.Seen{Point: uint64(p + 1), X: x + o.tracks*r*cos,
					Y: y + o.tracks*r*sin})
			}
		}
	})
	return found
}

// writeFar writes depths and the list of the photos off the path, if there are any.
func (o *options) writeFar(s *synth.Capture, cams []scene.Camera) error {
	far := cams[o.photos:]
	if len(far) == 0 {
		return nil
	}
	depths, names := filepath.Join(o.out, "depths"), ""
	for i := range far {
		names += far[i].Name + "\n"
	}
	if err := os.MkdirAll(depths, 0o777); err != nil {
		return err
	}
	err := each(len(far), func(i int) error {
		return picture.WriteDepth(filepath.Join(depths, strings.TrimSuffix(far[i].Name, ".jpg")+".npy"),
			s.Depths(o.photos+i), o.width, o.height)
	})
	return errors.Join(err, os.WriteFile(filepath.Join(o.out, "far.txt"), []byte(names), 0o666))
}

func (o *options) photo(s *synth.Capture, i int) image.Image {
	out := enlarge(s.Photo(i, o.shrink), o.shrink, o.width, o.height)
	stream := newNoise(o.seed, i)
	stream.add(out.Y, o.noise)
	stream.add(out.Cb, o.noise/2)
	stream.add(out.Cr, o.noise/2)
	return out
}

// each calls f for 0 to n-1 on all cores.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	parallel.For(n, func(i int) { errs[i] = f(i) })
	return errors.Join(errs...)
}

// writeFile writes a file through a buffer.
func writeFile(path string, write func(w io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(f, 1<<20)
	if err = write(b); err == nil {
		err = b.Flush()
	}
	return errors.Join(err, f.Close())
}
