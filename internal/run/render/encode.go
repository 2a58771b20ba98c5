package render

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
)

// Encode makes the video.
func Encode(console *cli.Console, dir string, o *Options) (err error) {
	names, err := listPictures(dir)
	if err != nil {
		return err
	}
	program, err := exec.LookPath(FfmpegName)
	if err != nil {
		return fault.WithHint(fmt.Errorf("write video %s: %w", o.Video, ErrNoFFmpeg), "install ffmpeg")
	}
	ctx, stop := console.Stoppable(cli.Always("stopping"))
	defer stop()
	first, err := readPicture(filepath.Join(dir, names[0]))
	if err != nil {
		return err
	}
	v, err := openVideo(console, program, o, first.Rect.Dx(), first.Rect.Dy())
	defer func() { err = errors.Join(err, v.abandon()) }()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := encodePicture(ctx, v, filepath.Join(dir, name), first.Rect); err != nil {
			return err
		}
	}
	if err := v.finish(); err != nil {
		return err
	}
	console.Printf("video: %s, %s\n", o.Video, cli.Count(len(names), "picture"))
	return nil
}

// encodePicture adds a picture of a size to a video.
func encodePicture(ctx context.Context, v *videoPipe, file string, size image.Rectangle) error {
	if ctx.Err() != nil {
		return fault.ErrInterrupted
	}
	p, err := readPicture(file)
	if err != nil {
		return err
	}
	if p.Rect != size {
		return pictureError(file, "the pictures of a video have one size",
			fmt.Errorf("it has %dx%d pixels, the first picture has %dx%d", p.Rect.Dx(), p.Rect.Dy(), size.Dx(),
				size.Dy()))
	}
	return v.write(p.Pix)
}

func pictureError(file, hint string, err error) error {
	return &fault.Error{Op: "read picture", Path: file, Err: err, Hint: hint}
}

// listPictures returns the names of the pictures in a folder, in order, without those of normals that render wrote
// beside them.
func listPictures(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, pictureError(dir, "name the folder that vksplat render wrote pictures to", fault.Pathless(err))
	}
	for _, e := range entries {
		kind := strings.ToLower(filepath.Ext(e.Name()))
		if !strings.HasPrefix(e.Name(), ".") && !strings.HasSuffix(e.Name(), normalSuffix) &&
			slices.Contains([]string{".png", ".jpg", ".jpeg"}, kind) {
			names = append(names, e.Name())
		}
	}
	if len(names) == 0 {
		return nil, pictureError(dir, "name the folder that vksplat render wrote PNG or JPEG pictures to",
			errors.New("there are no pictures in it"))
	}
	return names, nil
}

// readPicture reads a picture over black.
func readPicture(file string) (*image.RGBA, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, pictureError(file, "", fault.Pathless(err))
	}
	defer f.Close() // only read
	c, _, err := image.DecodeConfig(f)
	if err == nil && (c.Width > MaxPictureSide || c.Height > MaxPictureSide) {
		err = fmt.Errorf("it has %dx%d pixels, sides of %d are allowed", c.Width, c.Height, MaxPictureSide)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	var p image.Image
	if err == nil {
		p, _, err = image.Decode(f)
	}
	if err != nil {
		return nil, pictureError(file, "draw it again, or remove it", err)
	}
	out := image.NewRGBA(image.Rect(0, 0, p.Bounds().Dx(), p.Bounds().Dy()))
	draw.Draw(out, out.Rect, p, p.Bounds().Min, draw.Src)
	return out, nil
}
