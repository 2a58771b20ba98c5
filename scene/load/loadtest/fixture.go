package loadtest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/load"
	"vksplat/scene/scenetest"
)

// pixel is where a point of the world falls in a photo.
type pixel struct {
	photo         string
	width, height int
	point         [3]float64
	x, y          float64
}

const pixelsFile = "pixels.txt"

// fixtureOf is the fixture of the package under test, which tools/posefixtures.py writes.
var fixtureOf = filepath.Join("testdata", "small")

func readPixels(t testing.TB) (pixels []pixel) {
	t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(fixtureOf, pixelsFile)))(t)
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		var p pixel
		must.Get(fmt.Sscan(lines.Text(), &p.photo, &p.width, &p.height, &p.point[0], &p.point[1], &p.point[2], &p.x,
			&p.y))(t)
		pixels = append(pixels, p)
	}
	return pixels
}

// Fixture copies the fixture of the package under test, testdata/small, and puts its photos into a folder of the copy,
// which it returns.
func Fixture(t testing.TB, photos string) (root string) {
	t.Helper()
	root = t.TempDir()
	must.Do(t, filepath.WalkDir(fixtureOf, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == pixelsFile {
			return err
		}
		data, err := os.ReadFile(file)
		rel, _ := filepath.Rel(fixtureOf, file)
		scenetest.Put(t, filepath.Join(root, rel), data)
		return err
	}))
	done := map[string]bool{}
	for _, p := range readPixels(t) {
		if !done[p.photo] {
			scenetest.WritePhoto(t, filepath.Join(root, filepath.FromSlash(photos), p.photo), p.width, p.height)
			done[p.photo] = true
		}
	}
	return root
}

// CheckFixture demands that a capture of the fixture has all of its photos, that points of the world fall where the
// formulas of the format put them, and that the cloud has these points, or none.
func CheckFixture(t *testing.T, c *scene.Capture, points bool) {
	t.Helper()
	seen := map[string]bool{}
	var world [][3]float64
	for _, p := range readPixels(t) {
		i := slices.IndexFunc(c.Cameras, func(cam scene.Camera) bool { return path.Base(cam.Name) == p.photo })
		if i < 0 {
			t.Fatalf("there is no camera of %s", p.photo)
		}
		seen[p.photo] = true
		x, y := pixelOf(t, c.Cameras[i], p)
		if !(math.Abs(x-p.x) < 1e-6 && math.Abs(y-p.y) < 1e-6) {
			t.Errorf("%s: %v falls on %.6f %.6f, want %.6f %.6f", p.photo, p.point, x, y, p.x, p.y)
		}
		world = append(world, p.point)
	}
	if len(c.Cameras) != len(seen) {
		t.Errorf("%d cameras, want %d", len(c.Cameras), len(seen))
	}
	if (len(c.Points) > 0) != points {
		t.Errorf("%d points", len(c.Points))
	}
	for _, q := range c.Points {
		if !slices.ContainsFunc(world, func(p [3]float64) bool { return geom.Length(geom.Sub(p, q.Pos)) < 1e-6 }) {
			t.Errorf("the cloud has a point at %v", q.Pos)
		}
	}
}

// pixelOf projects a point by a camera as loaded, into the photo's own pixels.
func pixelOf(t *testing.T, cam scene.Camera, p pixel) (x, y float64) {
	t.Helper()
	ray := cam.ToCamera(p.point)
	k := scene.Calibration{Model: scene.LensPinhole, Width: cam.Width, Height: cam.Height,
		Params: []float64{cam.Fx, cam.Fy, cam.Cx, cam.Cy}}
	if cam.Lens != nil {
		k = cam.Lens.Calibration
	}
	o := must.Get(k.Optics(p.width, p.height))(t)
	x, y, ok := o.Project(ray)
	if !ok {
		t.Fatalf("%s: %v is not seen", p.photo, p.point)
	}
	return x, y
}

// CheckEdited demands that a file of the fixture in which a text is replaced by another is refused, with words and a
// hint.
func CheckEdited(t *testing.T, root, name, from, to, want string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%s has no %q: %v", name, from, err)
	}
	scenetest.Put(t, file, bytes.ReplaceAll(data, []byte(from), []byte(to)))
	if _, err = load.Capture(root, AnyModel()); err == nil {
		t.Fatal("it is read")
	}
	scenetest.CheckRefusal(t, err, []string{want}, "", nil)
}

// NotFinite are spellings of C libraries for numbers that are not finite.
var NotFinite = []string{"nan", "-nan", "-nan(ind)", "nan(snan)", "1.#QNAN", "-1.#IND00", "-inf", "1.#INF"}

// NotFiniteJSON are those that programs write as JSON, which lacks them, and numbers beyond float64.
var NotFiniteJSON = []string{"NaN", "-Infinity", "Infinity", "-nan", "nan(ind)", "inf", "1e999",
	"-1.5E+0400"}

// CheckNotFinite demands that of a capture of a file in which the first of a text is replaced by another, with @ for a
// number that is not finite, one photo is left out, or one point, and that nothing is left out when strict.
func CheckNotFinite(t *testing.T, capture func() (root string), name, from, to, code string, spellings []string) {
	t.Helper()
	for _, number := range spellings {
		root := capture()
		whole := MustLoad(t, root, AnyModel())
		file := filepath.Join(root, filepath.FromSlash(name))
		data, err := os.ReadFile(file)
		if err != nil || !bytes.Contains(data, []byte(from)) {
			t.Fatalf("%s has no %q: %v", name, from, err)
		}
		edited := strings.ReplaceAll(to, "@", number)
		scenetest.Put(t, file, bytes.Replace(data, []byte(from), []byte(edited), 1))
		c, err := load.Capture(root, AnyModel())
		if err != nil {
			t.Errorf("%s: %v", edited, err)
			continue
		}
		w, ok := scenetest.WarningOf(c, code)
		lost := len(whole.Cameras) + len(whole.Points) - len(c.Cameras) - len(c.Points)
		if !ok || w.Count != 1 || lost != 1 {
			t.Errorf("%s: %d are left out, and %v", edited, lost, c.Warnings)
		}
		if code != "bad-poses" {
			continue
		}
		strict := AnyModel()
		strict.Strict = true
		_, err = load.Capture(root, strict)
		scenetest.CheckRefusal(t, err, nil, "", nil)
	}
}

var (
	numbersOf = regexp.MustCompile(`-?\d+(\.\d+)?([eE][-+]?\d+)?`)
	wrong     = []string{"NaN", "1e999", "-1", "0", "", `"x"`, "[]", "99999999999999999999"}
)

// CheckDamage damages a file of the fixture in many ways: whatever it holds then is an error with a hint, or a capture
// whose numbers are finite, and nothing panics.
func CheckDamage(t *testing.T, root, name string) {
	t.Helper()
	file := filepath.Join(root, filepath.FromSlash(name))
	whole := must.Get(os.ReadFile(file))(t)
	try := func(data []byte) {
		t.Helper()
		scenetest.Put(t, file, data)
		c, err := load.Capture(root, AnyModel())
		var known *fault.Error
		if err != nil && (!errors.As(err, &known) || fault.Hint(err) == "") {
			t.Fatalf("no error with a hint: %v, of\n%.2000s", err, data)
		}
		if err != nil {
			return
		}
		for _, cam := range c.Cameras {
			if !geom.Finite(cam.R[:]...) || !geom.Finite(cam.T[:]...) || !geom.Finite(cam.Fx, cam.Fy, cam.Cx, cam.Cy) {
				t.Fatalf("camera %+v of\n%.2000s", cam, data)
			}
		}
	}
	const places = 16
	for i := range places {
		try(whole[:len(whole)*i/places])
	}
	at := numbersOf.FindAllIndex(whole, -1)
	for i, step := 0, len(at)/places+1; i < len(at); i += step {
		for _, w := range wrong {
			try(slices.Concat(whole[:at[i][0]], []byte(w), whole[at[i][1]:]))
		}
	}
	for i := range places {
		flipped := bytes.Clone(whole)
		flipped[len(whole)*i/places] ^= 1 << (i % 8)
		try(flipped)
	}
	try(bytes.Repeat([]byte("{\"a\":["), 1<<16))
	try(bytes.Repeat([]byte("<group>"), 1<<16))
	scenetest.Put(t, file, whole)
}
