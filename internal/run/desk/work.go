package desk

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/meter"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/scene"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
)

// Kinds of jobs.
const (
	kindTrain   = "train"
	kindCapture = "capture"
	kindExport  = "export"
	kindFlight  = "flight"
	kindView    = "view" // not listed on the page
)

// previewFile is the picture of a run that train --preview keeps, in OUT.
const (
	previewFile    = "preview.jpg"
	previewSeconds = "4"
)

// Presets that the page offers.
var presets = []string{"default", "3dgs", "mcmc"}

type trainRequest struct {
	Scene  string `json:"scene"`
	Preset string `json:"preset"`
	Score  bool   `json:"score"` // hold photos out and measure
	Size   int    `json:"size"`  // photos are shrunk by 1, 2, 4 or 8; 0: where they are wide
	Limit  int    `json:"limit"` // seconds that the run may take; 0: any
	Name   string `json:"name"`  // of the run's folder; "": made of scene and preset
}

// mostLimit bounds the seconds of a time limit: a week.
const mostLimit = 7 * 24 * 3600

func (r *trainRequest) check() error {
	if !slices.Contains(presets, r.Preset) {
		return fault.Usagef("", "train: there is no preset %.20q", r.Preset)
	}
	if r.Name != "" {
		if err := output.CheckName("run", r.Name); err != nil {
			return err
		}
	}
	if !slices.Contains([]int{0, 1, 2, 4, 8}, r.Size) {
		return sizeError(strconv.Itoa(r.Size))
	}
	if r.Limit < 0 || r.Limit > mostLimit {
		return fault.Usagef("", "train: invalid time limit of %d seconds", r.Limit)
	}
	return nil
}

func sizeError(size string) error {
	return fault.Usagef("", "train: invalid shrink factor %.20q", size)
}

func (r *trainRequest) settings() []string {
	args := []string{cli.Flag("preset", r.Preset)}
	if r.Score {
		args = append(args, cli.Switch("eval"))
	}
	if r.Size > 0 {
		args = append(args, cli.Flag("downscale", strconv.Itoa(r.Size)))
	}
	return args
}

// beginning is the flag that a capture needs in which a verdict found nothing to begin with. known says whether there
// is a verdict.
func (d *desk) beginning(scene string) (flags []string, known bool) {
	c := d.checks.known("verdict " + scene)
	if c.Report == nil {
		return nil, false
	}
	return beginsRandom(c.Report.Pointless()), true
}

// beginningOf is beginning of a scene that may have no verdict.
func (d *desk) beginningOf(dir string) []string {
	flags, known := d.beginning(dir)
	if !known {
		c, err := load.Capture(dir, scene.LoadOptions{Model: scene.AnyModel, Downscale: 1})
		return beginsRandom(err == nil && inspect.NeedsInit(c))
	}
	return flags
}

func beginsRandom(needed bool) []string {
	if !needed {
		return nil
	}
	return []string{cli.Flag("init", "random")}
}

// followed are the flags by which this page follows a run.
func (d *desk) followed(out string) []string {
	return append(slices.Clone(d.DeviceArgs), cli.Flag("progress", meter.None), cli.Flag("viewer", "0"),
		cli.Flag("preview", filepath.Join(out, previewFile)), cli.Flag("preview-every", previewSeconds))
}

// train queues a training and returns the job's number.
func (d *desk) train(r *trainRequest) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	dir, err := d.absolute(r.Scene)
	if err != nil {
		return "", err
	}
	if err := d.ownScene(dir, r.Size); err != nil {
		return "", err
	}
	name := r.Name
	if name == "" {
		name = wording.PlainName(filepath.Base(dir) + "-" + r.Preset)
	}
	out, err := d.reserve(runsFolder, name, "")
	if err != nil {
		return "", err
	}
	j := &job{Kind: kindTrain, Title: filepath.Base(out), Scene: d.relative(dir), Run: d.relative(out),
		Made: d.relative(out), lane: laneDevice}
	j.args = append([]string{"train", dir, cli.Flag("model-path", out)}, r.settings()...)
	j.args = append(j.args, d.beginningOf(dir)...)
	if r.Limit > 0 {
		j.args = append(j.args, cli.Flag("time-limit", strconv.Itoa(r.Limit)+"s"))
	}
	j.args = append(j.args, d.followed(out)...)
	return d.queue.add(j)
}

// reserve makes a folder of data and gives a fresh path in it. It stays so, because only this process makes some there.
func (d *desk) reserve(kind, name, ending string) (string, error) {
	d.uploads.making.Lock()
	defer d.uploads.making.Unlock()
	dir, err := d.keep(kind)
	if err != nil {
		return "", err
	}
	path := fresh(dir, name, ending, func(path string) bool { return d.reserved[path] })
	d.reserved[path] = true
	return path, nil
}

// resume queues the rest of a run. The command finds the photos itself: what a run's files say never becomes an
// argument.
func (d *desk) resume(rel string) (string, error) {
	out, err := d.runFolder(rel)
	if err != nil {
		return "", err
	}
	begun, _ := d.readBegun(out) // where it says nothing, the command says what is wrong
	j := &job{Kind: kindTrain, Title: filepath.Base(out), Run: d.relative(out), Made: d.relative(out), lane: laneDevice}
	if dir := begun.Source.Scene; dir != "" {
		j.Scene = d.relative(dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && !output.Within(real, d.root) {
			return "", openError(filepath.Base(dir), errOutside)
		}
		if err := d.ownScene(dir, begun.Source.Downscale); err != nil {
			return "", err
		}
	}
	j.args = append([]string{"resume", out}, d.followed(out)...)
	return d.queue.add(j)
}

// runFolder is the folder of a run that is not being written.
func (d *desk) runFolder(rel string) (string, error) {
	out, err := d.absolute(rel)
	if err != nil {
		return "", err
	}
	if !isRun(out) {
		return "", fault.Usagef("choose the folder of a run", "open run: %s is not a run", rel)
	}
	entries, err := os.ReadDir(out)
	if err != nil {
		return "", openError(rel, err)
	}
	for _, e := range entries { // what is written to the run must not be written elsewhere
		if path := filepath.Join(out, e.Name()); e.Type()&os.ModeSymlink != 0 {
			if _, err := d.absolute(d.relative(path)); errors.Is(err, errOutside) {
				return "", fault.Usagef("remove that link, or use the run on the command line",
					"open run: %s is a link that leads out of the opened folder", d.relative(path))
			}
		}
	}
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	if j := d.queue.working(d.relative(out)); j != nil {
		return "", fault.Usagef(waitHint, "open run: %s is being trained", rel)
	}
	return out, nil
}

// capture queues the search for cameras of photos or a video.
func (d *desk) capture(rel string) (string, error) {
	footage, err := d.absolute(rel)
	if err != nil {
		return "", err
	}
	base := filepath.Base(footage)
	if output.IsFile(footage) {
		base = strings.TrimSuffix(base, filepath.Ext(base))
	}
	name := wording.PlainName(base)
	if name == "" {
		name = "scene"
	}
	made, err := d.sceneOf(d.relative(footage), name)
	if err != nil {
		return "", err
	}
	j := &job{Kind: kindCapture, Title: filepath.Base(made), Scene: d.relative(footage), Made: d.relative(made),
		lane: laneCores, args: slices.Concat([]string{"capture", footage, cli.Flag("output", made),
			cli.Flag("viewer", "0")}, d.DeviceArgs)}
	return d.queue.add(j)
}

// sceneOf is the folder of the scene of some footage: that of an earlier job that did not get to its end, which the
// same command continues, or a fresh one.
func (d *desk) sceneOf(footage, name string) (string, error) {
	d.queue.mu.Lock()
	j := d.queue.first(func(j *job) bool {
		return j.Kind == kindCapture && j.Scene == footage && (j.State == stateStopped || j.State == stateFailed)
	})
	d.queue.mu.Unlock()
	if j != nil {
		return filepath.Join(d.root, filepath.FromSlash(j.Made)), nil
	}
	return d.reserve(scenesFolder, name, "")
}

// pageFormat is a page with viewer and model.
const pageFormat = ".html"

// exportFormats are the page's formats, by extension.
var exportFormats = []string{".ply", ".compressed.ply", ".spz", ".sog", ".splat", ".glb", ".usdz", pageFormat}

// exportRequest asks for a file of a run's newest model, and what is changed on the way.
type exportRequest struct {
	Path    string `json:"path"`
	Format  string `json:"format"`
	Upright bool   `json:"upright"` // up of the cameras becomes that of viewers
	Clean   bool   `json:"clean"`   // without isolated splats
	Splats  int    `json:"splats"`  // the most important ones; 0: all
}

// changes are the flags of convert.
func (r *exportRequest) changes() (args []string) {
	if r.Upright {
		args = append(args, cli.Flag("orient", "up"))
	}
	if r.Clean {
		args = append(args, cli.Switch("prune-outliers"))
	}
	if r.Splats > 0 {
		args = append(args, cli.Flag("max-splats", strconv.Itoa(r.Splats)))
	}
	return args
}

// export queues a conversion of a run's newest model.
func (d *desk) export(r *exportRequest) (string, error) {
	changes := r.changes()
	switch {
	case !slices.Contains(exportFormats, r.Format) || r.Splats < 0:
		return "", fault.Usagef("", "export: there is no format %.20q of %d splats", r.Format, r.Splats)
	case r.Format == pageFormat && len(changes) > 0:
		return "", fault.Usagef("export another format", "export: a page cannot change the model")
	}
	out, err := d.runFolder(r.Path)
	if err != nil {
		return "", err
	}
	file, err := d.reserve(exportsFolder, filepath.Base(out), r.Format)
	if err != nil {
		return "", err
	}
	j := &job{Kind: kindExport, Title: filepath.Base(file), Run: d.relative(out), Made: d.relative(file),
		lane: laneExports, args: append([]string{"convert", out, file}, changes...)}
	if r.Format == pageFormat {
		j.args = []string{"view", out, cli.Flag("html", file)}
	}
	return d.queue.add(j)
}

// flightPaths are the page's trajectories.
var flightPaths = []string{"ellipse", "orbit", "spiral", "interp"}

// flightRequest asks for a video of a flight through a model.
type flightRequest struct {
	Run     string `json:"run"`
	Path    string `json:"path"`
	Seconds int    `json:"seconds"`
	Height  int    `json:"height"` // 720 or 1080
}

// flight queues the video.
func (d *desk) flight(r *flightRequest) (string, error) {
	sizes := map[int]string{480: "854x480", 720: "1280x720", 1080: "1920x1080"}
	if !slices.Contains(flightPaths, r.Path) || r.Seconds < 1 || r.Seconds > 120 || sizes[r.Height] == "" {
		return "", fault.Usagef("", "render flight: no path %.20q of %d seconds and %d rows", r.Path, r.Seconds,
			r.Height)
	}
	out, err := d.runFolder(r.Run)
	if err != nil {
		return "", err
	}
	file, err := d.reserve(flightsFolder, filepath.Base(out)+"-"+r.Path, ".mp4")
	if err != nil {
		return "", err
	}
	j := &job{Kind: kindFlight, Title: filepath.Base(file), Run: d.relative(out), Made: d.relative(file),
		lane: laneDevice}
	j.args = append([]string{"render", out, cli.Flag("trajectory", r.Path),
		cli.Flag("seconds", strconv.Itoa(r.Seconds)), cli.Flag("size", sizes[r.Height]), cli.Flag("video", file)},
		d.DeviceArgs...)
	return d.queue.add(j)
}
