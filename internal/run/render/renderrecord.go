package render

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/output"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/picture"
)

// recordFile says in the folder of pictures what each was asked to be, so that a render that was interrupted goes on,
// and never mixes with another.
const recordFile = "render.json"

type renderRecord struct {
	Pictures map[string]string `json:"pictures"` // by file, a hash of all that decides what is in it
}

// keepFormer finds which pictures an interrupted render of the same has left, and records what is going to be there.
// What is of another render is refused or, with --overwrite, removed.
func keepFormer(console *cli.Console, r *rendering, m *subject) error {
	other := "choose another folder, or replace its pictures with " + fault.Setting("overwrite")
	r.kept = make([]bool, len(r.shots))
	if r.o.Out == "" || r.o.Format == FormatNone || r.o.single != "" {
		return nil
	}
	path := filepath.Join(r.o.Out, recordFile)
	record, err := readRecord(path, r.o.Overwrite)
	if err != nil {
		return err
	}
	if err := r.clearHalves(); err != nil {
		return err
	}
	settings := r.settingsHash(m)
	var stale []string
	kept, cut := 0, 0
	for i := range r.shots {
		file := r.shots[i].name + r.suffix()
		want := shotHash(settings, &r.shots[i].camera)
		full := filepath.Join(r.o.Out, file)
		if err := r.refuseBeside(record, file); err != nil {
			return err
		}
		if output.IsFile(full) {
			was, known := record.Pictures[filepath.ToSlash(file)]
			switch {
			case known && was == want && !r.o.Overwrite:
				if r.kept[i] = r.complete(i, full); r.kept[i] {
					kept++
				} else {
					cut++
				}
			case r.isPhoto(full):
				return fault.Usagef("choose another folder", "%s is a photo of the capture", full)
			case known && !r.o.Overwrite:
				return fault.Usagef(other, "%s is of another render", full)
			case !r.o.Overwrite:
				return fault.Usagef(other, "%s already exists and was not written by render", full)
			default:
				stale = append(stale, full)
			}
		}
		record.Pictures[filepath.ToSlash(file)] = want
	}
	if err := removeAll(stale); err != nil {
		return err
	}
	if cut > 0 {
		console.Warn(fmt.Sprintf("%s of this render in %s, but incomplete: drawn again", Are(cut, "picture"), r.o.Out))
	}
	if kept > 0 {
		console.Note(fmt.Sprintf("%s of this render in %s already; %s draws them again", Are(kept, "picture"), r.o.Out,
			fault.Setting("overwrite")))
	}
	return output.WriteJSON(path, record)
}

// clearHalves removes what a render that was killed left half written of the files of this one. It refuses two files of
// one name: of photos x and x.normal, the normals of the first would be the picture of the second.
func (r *rendering) clearHalves() error {
	files := map[string]bool{filepath.Join(r.o.Out, recordFile): true}
	folders := map[string]bool{r.o.Out: true}
	for i := range r.shots {
		file := filepath.Join(r.o.Out, r.shots[i].name+r.suffix())
		for _, name := range append(r.o.beside(file), file) {
			if files[name] {
				return fault.Usagef("give a "+fault.Setting("name")+" with a number, as in "+framePattern,
					"two files would be named %s", name)
			}
			files[name], folders[filepath.Dir(name)] = true, true
		}
	}
	for folder := range folders {
		output.RemoveTemps(folder, func(base string, _ bool) bool { return files[filepath.Join(folder, base)] })
	}
	return nil
}

// removeAll removes pictures that are drawn again. They would be taken for this render's if it were interrupted.
func removeAll(files []string) error {
	for _, full := range files {
		if err := os.Remove(full); err != nil {
			return err
		}
	}
	return nil
}

// complete tells whether what belongs to a picture that is there is there too, and all of it whole: pictures come to
// their names whole, but a full disk or a copy to another may have cut them.
func (r *rendering) complete(i int, full string) bool {
	width, height := r.shots[i].camera.Width, r.shots[i].camera.Height
	if r.panorama != nil {
		width, height = r.panorama.width, r.panorama.height
	}
	for _, file := range r.o.beside(full) {
		whole := picture.WholeDepth(file, width, height)
		if strings.HasSuffix(file, normalSuffix) {
			whole = picture.WholePicture(file, width, height, picture.Options{Format: picture.FormatPNG})
		}
		if !whole {
			return false
		}
	}
	return picture.WholePicture(full, width, height, r.kind)
}

// beside lists the files of depths and normals that go with a picture.
func (o *Options) beside(file string) (list []string) {
	name := strings.TrimSuffix(file, filepath.Ext(file))
	if o.Depth && o.Format != picture.FormatEXR {
		list = append(list, name+depthSuffix)
	}
	if o.Normals {
		list = append(list, name+normalSuffix)
	}
	return list
}

// besideBytes is the RAM per pixel for making these, in addition to the rendering.
func (o *Options) besideBytes() int64 {
	if o.Normals {
		return picture.NormalBytes
	}
	return 0
}

// refuseBeside refuses to replace files that have the names of what goes with a picture, where no render wrote it.
func (r *rendering) refuseBeside(record *renderRecord, picture string) error {
	if _, known := record.Pictures[filepath.ToSlash(picture)]; known {
		return nil
	}
	return output.RefuseExisting("", r.o.Overwrite, r.o.beside(filepath.Join(r.o.Out, picture))...)
}

// isPhoto tells whether a file is one that a camera's picture was taken from.
func (r *rendering) isPhoto(path string) bool {
	info, err := os.Stat(path)
	return err == nil && slices.ContainsFunc(r.shots, func(s shot) bool {
		photo, err := os.Stat(s.camera.Path)
		return err == nil && os.SameFile(info, photo)
	})
}

// Are says "1 thing is" or "3 things are".
func Are(n int, thing string) string {
	if n == 1 {
		return "1 " + thing + " is"
	}
	return cli.Count(n, thing) + " are"
}

// readRecord reads recordFile; without one nothing is recorded.
func readRecord(path string, overwrite bool) (*renderRecord, error) {
	record := &renderRecord{}
	err := strictjson.ReadFile(path, record)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fault.WithHint(fmt.Errorf("read %s: %w: %w", path, fault.ErrData, fault.Pathless(err)),
			"render writes this file; remove it and draw all pictures again with "+fault.Setting("overwrite")+
				", or choose another folder")
	}
	if err == nil && record.Pictures == nil && !overwrite {
		return nil, fault.Usagef("choose another folder, or replace it with "+fault.Setting("overwrite"),
			"%s already exists and was not written by render", path)
	}
	if record.Pictures == nil {
		record.Pictures = map[string]string{}
	}
	return record, nil
}

// settingsHash is a hash of what decides about all pictures: the model, and how it is drawn and written.
func (r *rendering) settingsHash(m *subject) []byte {
	h := sha256.New()
	o, s := r.o, m.splats
	fmt.Fprintln(h, "vksplat render 1", s.N, s.Degree, o.Config.Background, o.Config.Near, o.Config.Antialiased,
		o.Depth, r.kind, r.unit, o.Projection)
	if r.panorama != nil {
		fmt.Fprintln(h, r.panorama.width, r.panorama.height)
	}
	if o.Normals {
		fmt.Fprintln(h, "normals")
	}
	if m.parts != nil {
		fmt.Fprintln(h, m.parts.Digest, m.most)
	}
	for _, t := range s.Tensors() {
		hashFloats(h, t.Data)
	}
	return h.Sum(nil)
}

// hashFloats adds numbers to a hash.
func hashFloats(h hash.Hash, x []float32) {
	const piece = 1 << 14
	b := make([]byte, 0, 4*piece)
	for lo := 0; lo < len(x); lo += piece {
		b = b[:0]
		for _, v := range x[lo:min(lo+piece, len(x))] {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		_, _ = h.Write(b) // a hash takes everything
	}
}

// shotHash is a hash of what decides about a picture.
func shotHash(settings []byte, c *scene.Camera) string {
	h := sha256.New()
	_, _ = h.Write(settings) // a hash takes everything
	fmt.Fprintln(h, c.Width, c.Height, c.Model)
	for _, x := range append([]float64{c.Fx, c.Fy, c.Cx, c.Cy}, append(c.R[:], c.T[:]...)...) {
		_ = binary.Write(h, binary.LittleEndian, x)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}
