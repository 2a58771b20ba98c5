package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/run/render"
	"vksplat/internal/run/train"
	"vksplat/scene/photo"
	"vksplat/scene/synth"
)

// The demo's size: small enough for a minute of software Vulkan on two cores.
const (
	Steps  = 900
	Photos = 48
	Points = 5000
	Width  = 256
	Height = 192
)

// Options is everything that demo is asked for.
type Options struct {
	train.Options
	Photos  int
	MinPSNR float64

	CaptureOnly bool
	Size        render.PixelsFlag // of the photos
	Points      int
	City        bool
}

// Run draws the capture, trains it and checks the quality.
func Run(console *cli.Console, o *Options) error {
	release, err := output.Claim(o.Out, true)
	if err != nil {
		return err
	}
	defer release()
	console.OnAbort, o.Claimed = release, true
	o.Scene = filepath.Join(o.Out, "capture")
	if err := o.refuseForeign(); err != nil {
		return err
	}
	if err := o.RefuseStopped(); err != nil {
		return err
	}
	if err := claimCapture(o.Scene, elsewhere()); err != nil {
		return err
	}
	console.Printf("rendering %s of a synthetic scene\n", cli.Count(o.Photos, "photo"))
	if err := synth.Write(o.Scene, o.synth(0)); err != nil {
		return err
	}
	o.Config.MaxSplats = o.Points
	var g grid
	o.Observers = append(o.Observers,
		func(*train.Options, *cli.Console) (train.Observer, error) { return train.Observe(g.observe), nil })
	st, err := train.Do(console, &o.Options)
	if st == nil {
		return err
	}
	picture := filepath.Join(o.Out, output.DemoPicture)
	if pixels, width, height := g.picture(); height > 0 {
		if err := photo.WritePNG(picture, pixels, width, height); err != nil {
			return err
		}
		if err := output.AddWritten(o.Out, picture); err != nil {
			return err
		}
		console.Sayf("overview (photos left, renders right): %s\n", picture)
	}
	if err != nil {
		return err
	}
	if st.PSNR < o.MinPSNR {
		return fault.WithHint(fmt.Errorf("held-out PSNR is %.2f dB, below the %g dB asked for", st.PSNR, o.MinPSNR),
			"fewer steps or photos than the defaults score lower; if you changed neither, run: vksplat doctor")
	}
	return nil
}

// refuseForeign refuses to replace what demo has not written, before the capture is drawn.
func (o *Options) refuseForeign() error {
	own := output.ReadWritten(o.Out)
	if own.Known && own.By != output.ByDemo {
		list, err := output.ListCheckpoints(filepath.Join(o.Out, output.CheckpointFolder))
		if err := errors.Join(err, output.RefuseFormer(o.Out, len(list), elsewhere())); err != nil {
			return err
		}
	}
	if !own.Known && output.HoldsRun(o.Out) {
		return nil // of a build that kept no list
	}
	return output.RefuseForeign(own.Foreign(append(output.RunPaths(o.Out), filepath.Join(o.Out, output.DemoPicture))),
		"or "+elsewhere())
}

// synth describes the capture.
func (o *Options) synth(seed uint64) synth.Options {
	return synth.Options{Images: o.Photos, Width: o.Size.Width, Height: o.Size.Height, Points: o.Points, Seed: seed,
		City: o.City}
}

// WriteCapture makes a capture and does not train it.
func WriteCapture(console *cli.Console, o *Options) error {
	if err := Write(o.Out, o.synth(o.Config.Seed), elsewhere()); err != nil {
		return err
	}
	console.Printf("capture: %s\n", o.Out)
	return nil
}

// Write makes a capture in dir, which must be new, empty or of an earlier Write. remedy is the hint if dir cannot be
// used.
func Write(dir string, o synth.Options, remedy string) error {
	if err := claimCapture(dir, remedy); err != nil {
		return err
	}
	release, err := output.Claim(dir, true)
	if err != nil {
		return err
	}
	defer release()
	return synth.Write(dir, o)
}

// elsewhere is the remedy of a folder that cannot be used.
func elsewhere() string { return "choose another folder with " + fault.Setting("model-path") }

// markerFile tells a capture that demo made from the user's own.
const markerFile = "made_by_vksplat_demo"

// claimCapture makes the folder of the demo's capture, unless there is one that
// demo did not make, or a run that is not its own: they would be overwritten.
func claimCapture(dir, remedy string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return output.FolderError(dir, err)
	}
	marker := filepath.Join(dir, markerFile)
	if _, err := os.Lstat(marker); err != nil {
		if len(entries) > 0 {
			return fault.Usagef(remedy, "%s is not empty and was not made by demo", dir)
		}
		list, err := output.ListCheckpoints(filepath.Join(filepath.Dir(dir), output.CheckpointFolder))
		if err == nil {
			err = output.RefuseFormer(filepath.Dir(dir), len(list), remedy)
		}
		if err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return output.FolderError(dir, err)
	}
	return atomicfile.WriteText(marker, "vksplat demo overwrites the files of this folder.\n")
}

// gridRows is how many photos the demo's picture shows.
const gridRows = 4

// gridGap is the width in pixels of the white lines in the demo's picture.
const gridGap = 4

// grid collects photos and renders for one picture: a row each, photo left, render right.
type grid struct {
	mu   sync.Mutex
	rows [gridRows]*row
}

// row is a photo beside its render.
type row struct {
	pixels        []float32 // [height][width][3], 0..1
	width, height int
}

// observe keeps the first photos.
func (g *grid) observe(e train.Event) error {
	c, is := e.(*train.Compared)
	if !is || c.Index >= gridRows {
		return nil
	}
	r := &row{width: 2*c.Photo.Width + gridGap, height: c.Photo.Height}
	left, line := photo.FloatRGB(c.Photo), 3*c.Photo.Width
	for y := range r.height {
		r.pixels = append(append(r.pixels, left[line*y:line*(y+1)]...), white(gridGap)...)
		r.pixels = append(r.pixels, c.Render[line*y:line*(y+1)]...)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rows[c.Index] = r
	return nil
}

// picture returns the rows of one width below each other.
func (g *grid) picture() (pixels []float32, width, height int) {
	for _, r := range g.rows {
		if r == nil || width > 0 && r.width != width {
			continue
		}
		if width = r.width; height > 0 {
			pixels, height = append(pixels, white(width*gridGap)...), height+gridGap
		}
		pixels, height = append(pixels, r.pixels...), height+r.height
	}
	return pixels, width, height
}

// white is a run of white pixels.
func white(n int) []float32 { return slices.Repeat([]float32{1, 1, 1}, n) }
