// Package levels makes the coarser levels of detail of a trained model: each has half the splats of the one before, by
// merging alike ones, and is then trained for some steps on photos of half the size, so that it is right where it is
// seen small.
package levels

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/itself"
	"vksplat/internal/run/output"
	"vksplat/internal/run/plans"
	"vksplat/internal/strictjson"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
	"vksplat/scene/splatfile"
)

// Options is everything that levels is asked for.
type Options struct {
	Out     string // of a training run
	Levels  int    // the model's own among them
	Steps   int    // of each level's training
	Replace bool   // levels of another model, or of other settings

	SourceFlags func(rec *captured.Source, dir string) []string // of train, that read a capture
	DeviceFlags []string                                        // of train, that choose the device
}

const (
	// Folder of a run holds its levels.
	Folder = "levels"
	// recordFile is in it.
	recordFile = "levels.json"
	// heldOutFile names there the photos that are held out.
	heldOutFile = "held_out.txt"
	// mostDownscale is the smallest size of photos: an eighth.
	mostDownscale = 8
)

// record says what the levels are of.
type record struct {
	Model  string  `json:"model_sha256"` // of the file that the first level is
	Steps  int     `json:"steps"`
	Levels []level `json:"levels"` // that are done, the second first
}

// level is one of them.
type level struct {
	Model     string `json:"model"` // its file, relative, with slashes
	Splats    int    `json:"splats"`
	Downscale int    `json:"downscale"` // of the photos that it was trained on
}

// making is levels that are being made.
type making struct {
	*Options
	console *cli.Console
	dir     string // the folder of the levels
	path    string // the model's file
	info    splatfile.Info
	source  captured.Record
	capture *scene.Capture // without its points
	sizes   []int          // factors by which photos are shrunk, of the second level and so on
	record  record
}

// Run makes what is missing of the levels.
func Run(console *cli.Console, ctx context.Context, o *Options) error {
	switch {
	case o.Levels < 2 || o.Levels > splatfile.MostStreamedLevels:
		return fault.Usagef(fmt.Sprintf("give a number from 2 to %d", splatfile.MostStreamedLevels), "%s: %d levels",
			fault.Named("lod"), o.Levels)
	case o.Steps < 1:
		return fault.Usagef("give a number of steps from 1 up", "%s: %d", fault.Named("steps"), o.Steps)
	case !output.IsFolder(o.Out):
		return fault.Usagef("name the folder OUT of vksplat train", "%s is not a folder", o.Out)
	}
	m := &making{Options: o, console: console, dir: filepath.Join(o.Out, Folder)}
	if err := m.open(); err != nil {
		return err
	}
	if err := os.MkdirAll(m.dir, 0o777); err != nil {
		return output.FolderError(m.dir, err)
	}
	release, err := output.Claim(m.dir, true)
	if err != nil {
		return err
	}
	defer release()
	if err := m.begin(); err != nil {
		return err
	}
	for k := range m.sizes {
		if k < len(m.record.Levels) {
			console.Printf("level %d: done before, %s\n", k+1, cli.Count(m.record.Levels[k].Splats, "splat"))
			continue
		}
		if err := m.level(ctx, k); err != nil {
			return err
		}
	}
	console.Printf("levels: %s\n%s\n", m.dir, "write them: "+
		fault.Command("convert "+cli.Quoted(o.Out)+" city.ssog"))
	return nil
}

// open finds the model, its capture, and how far photos can be shrunk.
func (m *making) open() (err error) {
	if m.path, err = plans.FindModel(m.Out); err != nil {
		return err
	}
	model, err := splatfile.Open(m.path)
	if err != nil {
		return err
	}
	m.info = model.Info()
	if err := model.Close(); err != nil {
		return err
	}
	source, err := captured.ReadRecord(m.Out)
	if err != nil {
		return err
	}
	if source == nil {
		return fault.Usagef("levels are trained on the photos of a run: name the folder OUT of vksplat train",
			"%s does not say which photos it was trained on", m.Out)
	}
	m.source = *source
	if m.source.Scene, err = source.Place(m.Out); err != nil {
		return err
	}
	if m.sizes, err = m.shrinks(); err != nil {
		return err
	}
	for n := m.info.N; len(m.sizes) > 0 && n>>len(m.sizes) < 1; {
		m.sizes = m.sizes[:len(m.sizes)-1]
	}
	if len(m.sizes) == 0 {
		return fault.Usagef("coarser levels are made by merging alone: "+
			fault.Command("convert "+cli.Quoted(m.Out)+" city.ssog"),
			"the run was trained on photos of an eighth of their size or on small ones, or has one splat: no level "+
				"can be smaller")
	}
	if len(m.sizes) < m.Levels-1 {
		m.console.Note(fmt.Sprintf("photos are shrunk to no less than an eighth and %d pixels a side: %s below the "+
			"model's own; convert makes those below by merging alone", inspect.SmallPhoto,
			cli.Count(len(m.sizes), "level")))
	}
	return nil
}

// shrinks lists by how much photos are shrunk for each level below the model's own.
func (m *making) shrinks() (list []int, err error) {
	var widths [2]int
	for i, factor := range []int{m.source.Downscale, 1} {
		var options captured.Options
		m.source.Options(&options, m.Out, func(string) bool { return false })
		options.Downscale = captured.DownscaleFlag(factor)
		c, err := load.Capture(m.source.Scene, options.Options())
		if err != nil {
			return nil, err
		}
		c.Points, m.capture = nil, c
		widths[i] = slices.MaxFunc(c.Cameras, func(a, b scene.Camera) int { return a.Width - b.Width }).Width
	}
	for k := 1; k < m.Levels; k++ {
		wanted := float64(widths[1]) / float64(widths[0]) * float64(int(1)<<k)
		factor := 1
		for float64(factor)*1.4 < wanted {
			factor *= 2
		}
		if factor > mostDownscale || tooSmall(m.capture.Cameras, factor) {
			break
		}
		list = append(list, factor)
	}
	return list, nil
}

// tooSmall reports whether train refuses the photos shrunk by a factor.
func tooSmall(whole []scene.Camera, factor int) bool {
	left := 0
	for i := range whole {
		if w, h := scene.TrainedSize(whole[i].Width, whole[i].Height, factor); min(w, h) >= inspect.SmallPhoto {
			left++
		}
	}
	return left < scene.MinPhotos
}

// begin reads what is there. Levels of another model, or of other settings, are refused or given up.
func (m *making) begin() error {
	sum, err := atomicfile.SHA256(m.path)
	if err != nil {
		return err
	}
	there, err := readRecord(m.dir)
	if err != nil {
		return err
	}
	want := record{Model: sum, Steps: m.Steps}
	switch {
	case there == nil:
		m.record = want
	case there.Model == sum && there.Steps == m.Steps:
		m.record = *there
	case !m.Replace:
		return fault.Usagef("replace them with "+fault.Setting("overwrite"),
			"%s has levels of another model, or of another number of steps", m.dir)
	default:
		if err := m.drop(); err != nil {
			return err
		}
		m.record = want
	}
	if len(m.source.HeldOut) > 0 {
		m.capture.HoldOutCameras(m.source.HeldOut)
		if err := captured.WriteTestList(filepath.Join(m.dir, heldOutFile), m.capture); err != nil {
			return err
		}
	}
	return output.WriteJSON(filepath.Join(m.dir, recordFile), &m.record)
}

// drop removes the levels that are there: this command wrote all of it.
func (m *making) drop() error {
	for k := 1; k < splatfile.MostStreamedLevels; k++ {
		if err := errors.Join(os.RemoveAll(m.run(k)), os.RemoveAll(m.start(k))); err != nil {
			return output.FolderError(m.dir, err)
		}
	}
	return nil
}

// run is the folder of a level's training, start the model that it begins with.
func (m *making) run(k int) string   { return filepath.Join(m.dir, strconv.Itoa(k)) }
func (m *making) start(k int) string { return filepath.Join(m.dir, strconv.Itoa(k)+".start.ply") }

// level makes the level after that of number k: it merges splats and trains.
func (m *making) level(ctx context.Context, k int) error {
	above := m.path
	if k > 0 {
		above = filepath.Join(m.dir, filepath.FromSlash(m.record.Levels[k-1].Model))
	}
	n, err := m.merge(ctx, above, m.start(k+1))
	if err == nil {
		m.console.Printf("level %d: %s, photos at 1/%d\n", k+1, cli.Count(n, "splat"), m.sizes[k])
		err = itself.Run(m.console, ctx, m.args(k))
	}
	switch {
	case ctx.Err() != nil:
		return fault.WithHint(fmt.Errorf("%w in level %d of %d", fault.ErrInterrupted, k+1, len(m.sizes)),
			"continue with the same command")
	case err != nil:
		return fault.WithHint(fmt.Errorf("train level %d of %s: %w", k+1, m.Out, err),
			"fix the error above, then run the same command again to continue")
	}
	file, err := splatfile.Find(m.run(k + 1))
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(m.dir, file)
	if err != nil {
		return err
	}
	m.record.Levels = append(m.record.Levels, level{filepath.ToSlash(rel), n, m.sizes[k]})
	return output.WriteJSON(filepath.Join(m.dir, recordFile), &m.record)
}

// merge writes a model of half the splats, and says how many these are.
func (m *making) merge(ctx context.Context, from, to string) (n int, err error) {
	model, err := splatfile.Open(from)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()
	if n = (model.Info().N + 1) / 2; output.IsFile(to) { // the same bytes: an interrupted training goes on
		return n, nil
	}
	half, err := splatfile.Decimate(model, n, m.dir, ctx.Err)
	if err != nil {
		return 0, err
	}
	_, err = splatfile.ByName(to).Write(to, half, splatfile.WriteOptions{})
	return n, errors.Join(err, half.Close())
}

// args are the arguments of train of the level after that of number k.
func (m *making) args(k int) []string {
	source := m.source.Source
	source.Downscale = m.sizes[k]
	further := itself.Further{Scene: source.Scene, Out: m.run(k + 1), Model: m.start(k + 1), Steps: m.Steps,
		Degree: m.info.Degree, Background: m.source.Background}
	if at := m.info.Meta.Origin; at != nil {
		further.Origin = *at
	}
	if len(m.source.HeldOut) > 0 {
		further.TestList = filepath.Join(m.dir, heldOutFile)
	}
	args := append(further.Args(), cli.Switch("resume"), cli.Flag("report", "false"))
	if near := m.source.Near; near > 0 {
		args = append(args, cli.Flag("near", strconv.FormatFloat(near, 'g', -1, 64)))
	}
	if m.info.Meta.Antialiased {
		args = append(args, cli.Switch("antialiased"))
	}
	if m.source.Exposure {
		args = append(args, cli.Switch("exposure"))
	}
	return slices.Concat(args, m.SourceFlags(&source, m.Out), m.DeviceFlags)
}

// readRecord reads the record of a folder of levels, nil where there is none.
func readRecord(dir string) (*record, error) {
	path := filepath.Join(dir, recordFile)
	r := &record{}
	err := strictjson.ReadFile(path, r)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fault.WithHint(fmt.Errorf("read %s: %w: %w", path, fault.ErrData, fault.Pathless(err)),
			"remove "+dir+" and make the levels again: "+fault.Command("levels OUT"))
	}
	return r, nil
}

// Of lists the files of the levels below a model's own, the finest first, that were made of the model in the folder of
// a run. other says that there are levels of another model.
func Of(out, model string) (files []string, other bool, err error) {
	dir := filepath.Join(out, Folder)
	r, err := readRecord(dir)
	if r == nil || err != nil {
		return nil, false, err
	}
	sum, err := atomicfile.SHA256(model)
	if err != nil || sum != r.Model {
		return nil, err == nil, err
	}
	for _, l := range r.Levels {
		if !filepath.IsLocal(filepath.FromSlash(l.Model)) {
			return nil, false, fmt.Errorf("%s: %w: the name %q leads out of the folder", dir, fault.ErrData, l.Model)
		}
		files = append(files, filepath.Join(dir, filepath.FromSlash(l.Model)))
	}
	return files, false, nil
}
