package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"vksplat/internal/run/render"
)

// renderPageFile is the page about render.
const renderPageFile = "../../docs/render.md"

// TestRenderPage wants docs/render.md to say what the table of options says.
func TestRenderPage(t *testing.T) {
	want := renderPage()
	if *update {
		if err := os.WriteFile(renderPageFile, []byte(want), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(renderPageFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the table of flags says; write it anew: make docs", renderPageFile)
	}
}

// renderPage prints what there is to know about render for people.
func renderPage() string {
	var b strings.Builder
	b.WriteString(renderText)
	for _, g := range renderTable(render.NewOptions()) {
		fmt.Fprintf(&b, "\n## Flags: %s\n\n| flag | default | what | source |\n|---|---|---|---|\n",
			strings.ToLower(g.title))
		for i := range g.options {
			b.WriteString(pageRow(&g.options[i]))
		}
	}
	return b.String()
}

// renderText is the page without its tables.
const renderText = `# Pictures and videos of a trained scene

The tables are made from the program's own by ` + "`make docs`" + `; a test compares them.

    vksplat render out -o frames                                   # the newest model of train's folder, from the views of its photos
    vksplat render out -o held_out --split test                    # only photos that --eval held out
    vksplat render model.ply --cameras my_scene -o frames          # any model, from the views of a capture
    vksplat render model.ply --cameras my_scene --downscale 2 --full-photos -o frames   # at half of the photos' size, whatever reduced copies there are
    vksplat render model.ply --cameras out -o frames               # from the views that another run was trained on
    vksplat render out --trajectory ellipse --size 1920x1080 --video flight.mp4
    vksplat render out --trajectory path.json -o shot --format exr --depth --name 'shot_%04d' --start-frame 1001
    vksplat render out --trajectory orbit --frames 0-0 --projection equirect --size 8192x4096 -o panorama

## Flights

| trajectory | what |
|---|---|
| ` + "`interp`" + ` | a smooth curve through the cameras of all photos in the order of their names |
| ` + "`ellipse`" + ` | around the point that the cameras look at, as wide and long as they are spread, at their mean height; constant speed (as Mip-NeRF 360 does) |
| ` + "`orbit`" + ` | a circle around that point, at the cameras' middle distance and mean height, beginning at the first photo |
| ` + "`spiral`" + ` | two turns near the mean camera, looking ahead, for captures whose photos all look one way (as LLFF does) |
| a file | see below |

` + "`ellipse`" + ` and ` + "`orbit`" + ` go all around. Where more than a quarter of the pictures would be seen from where no photo was taken (30 degrees or more around the axis
from the nearest), as in captures from one side, a warning says so: ` + "`interp`" + ` and ` + "`spiral`" + ` stay near the photos.

Up is the mean of the photos' up. Size and lens are those of the first photo, unless ` + "`--size`" + `, ` + "`--fov`" + ` or the file say otherwise; another aspect keeps what is
seen from top to bottom. ` + "`ellipse`" + `, ` + "`orbit`" + ` and ` + "`spiral`" + ` end a picture before their beginning, so that a video loops. A flight has ` + "`--seconds`" + ` times
` + "`--fps`" + ` pictures. ` + "`--frames 100-199`" + ` or ` + "`--frames 0-299x10`" + ` draws some of them, with the names that they have among all: several machines can share
the work.

Files that are understood, told apart by what is in them:

- **Keyframes**, this program's own, between which the camera follows a cubic spline through all of them:

  ` + "```json" + `
  {
    "fps": 30, "width": 1920, "height": 1080,
    "keyframes": [
      {"time": 0, "position": [0.1, -0.4, -3], "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "fov": 50},
      {"time": 2.5, "position": [1.1, -0.4, -2], "rotation": [[0.8, 0, -0.6], [0, 1, 0], [0.6, 0, 0.8]], "fov": 35}
    ]
  }
  ` + "```" + `

  ` + "`position`" + ` and ` + "`rotation`" + ` are those of ` + "`cameras.json`" + `: camera to world in the frame of the model's file, rows, the camera's x to the right, y down and
  z ahead; entries can be copied from there. ` + "`time`" + ` is in seconds and rises; without it keyframes are a second apart. ` + "`fov`" + ` is the vertical field of view in
  degrees; ` + "`focal`" + ` gives it as a focal length in pixels of a picture ` + "`height`" + ` high. ` + "`fps`, `width`, `height`, `fov` and `focal`" + ` may be left out.
- A **cameras.json**: each entry is a picture.
- nerfstudio's **camera_path.json**, whose poses are in nerfstudio's own frame: ` + "`--dataparser-transforms dataparser_transforms.json`" + ` of the run that the
  path was made with brings them back to the capture's: to the frame of the transforms.json that nerfstudio read.
- A **transforms.json**: each frame is a picture.
- COLMAP's **images.bin** or images.txt, with the cameras beside it: each image is a picture, in the order of the names.

## Pictures

| format | what |
|---|---|
| ` + "`png`, `png16`" + ` | 8 or 16 bits a channel; with ` + "`--alpha`" + ` colours that are not multiplied by it |
| ` + "`jpg`" + ` | quality 95 |
| ` + "`exr`" + ` | OpenEXR, half floats, ZIP; linear, premultiplied, with A unless ` + "`--background`" + ` is given; depth is channel Z in single precision |
| ` + "`npy`" + ` | NumPy, single precision: [height, width, 3], or [height, width, 4] with ` + "`--alpha`" + `; not clamped |
| ` + "`none`" + ` | nothing is written: how fast pictures are drawn and read back |

Models hold colours as photos do, in sRGB; ` + "`--colorspace linear`" + ` undoes its curve. ` + "`--depth`" + ` is the expected depth: the mean of the distance along the
camera's axis (z) over the splats that a pixel shows, each weighed by its share of the pixel, divided by the sum of the shares; in the units of the capture; 0
where there is nothing. In panoramas it is the distance from the camera. Beside pictures but EXR it is NAME.depth.npy: [height, width], single precision.

The background is ` + "`--background`" + `, or what the model was trained with, which the file itself, the run's ` + "`capture.json`" + ` or, where that is
lost, the run's newest checkpoint says (models of unknown origin: white with the cameras of a synthetic capture), or black; so it is for ` + "`eval`, `view`" + `, and so is ` + "`--near`" + `.

Pictures larger than the device's memory, or than ` + "`--max-vram`" + ` allows, are drawn in bands; the bytes are the same.

A panorama (` + "`--projection equirect`" + `) looks along the camera in its middle, and up as the camera at its top. It is made of six pictures that fade into each
other, because splats are drawn a little differently in each: a splat is projected as a flat ellipse about its own centre. For one that is larger than about half
its distance from the camera the ellipse is a poor likeness, which may fill one picture and hardly touch its neighbour. Photos that look there train such splats away;
where none did, the six pictures show: of a model of 12476 splats, trained on photos of one wall, two such splats made all of the edges.

A folder of pictures, and a video, are one render's at a time; a second one waits some seconds and is refused. A render that was interrupted goes on with the same command: pictures that are there are kept, and those that are not whole, by their head, their end and
their size, are drawn again. ` + "`DIR/render.json`" + ` says what each was asked to be; a picture of another
render of that name is an error, and ` + "`--overwrite`" + ` replaces it. Videos are always made whole.

## Videos

` + "`--video`" + ` needs the program ffmpeg, with libx264 (libvpx-vp9 for .webm). Pictures go there through a pipe; with ` + "`-o`" + ` they are written as files, too. Odd sizes
get a black line or column, colours are converted to BT.709 and tagged so. Without ffmpeg the pictures are written, the command that makes the video of them is
printed, and the exit code is 75.
`
