package inspection

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"

	"vksplat/internal/atomicfile"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/capture"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/output"
	"vksplat/internal/wording"
	"vksplat/pipeline"
	"vksplat/scene"
	"vksplat/scene/calibrate"
	"vksplat/scene/colmap"
	"vksplat/scene/inspect"
	"vksplat/scene/load"
)

// Options is everything that inspect is asked for.
type Options struct {
	Scene     string
	Photos    bool // a row for each
	Json      bool
	Quick     bool
	Overwrite bool   // Picture may replace a file
	Picture   string // of the cameras' errors, "" for none
	Device    pipeline.DeviceOptions
	Load      captured.Options
	PassedOn  []string // flags of the training that the last line names
}

// Run prints the report of a capture. A capture that cannot be trained on is an
// error of kind fault.ErrData.
func Run(console *cli.Console, o *Options) error {
	ctx, stop := console.Interruptible(cli.Always("stopping"))
	defer stop()
	found := capture.ReadReport(o.Scene)
	c, err := load.Capture(o.Scene, o.Load.Options())
	if _, has := colmap.FormOf(filepath.Join(o.Scene, filepath.FromSlash(captured.ModelFolder))); errors.Is(err,
		fault.ErrData) && !has && found != nil && found.Error != "" {
		err = fault.Data("find model", o.Scene, found.Hint, "vksplat capture found no cameras: %s", found.Error)
	}
	if err != nil {
		if !errors.Is(err, fault.ErrData) || !o.Json {
			return err
		}
		return errors.Join(err, console.PrintJSON(inspect.FailedReport(o.Scene, err)))
	}
	report, err := inspect.Capture(ctx, c, inspect.Options{Pixels: !o.Quick, Coverage: true})
	if err != nil {
		return err
	}
	errs, err := o.cameraErrors(ctx, c, console.Note)
	if err != nil {
		return err
	}
	if o.Json {
		err = console.PrintJSON(struct {
			*inspect.Report
			Errors *cameraErrors   `json:"camera_errors,omitempty"`
			Found  *capture.Report `json:"capture,omitempty"` // what vksplat capture said, where it made the scene
		}{report, errs, found})
	} else {
		text := reportText(report, o.Photos) + errs.text()
		if found != nil && (found.Error != "" || captured.Unchanged(c)) {
			text += found.Missing()
		}
		console.Table(text)
		console.Sayf("%s", o.verdict(report))
	}
	return errors.Join(report.Fatal(), err)
}

// cameraErrors is what the capture's observations say of its cameras.
type cameraErrors struct {
	Given      *calibrate.Residuals `json:"given"`
	Calibrated *calibrate.Residuals `json:"calibrated,omitempty"` // of the cameras that train would use
	Apart      []string             `json:"stand_apart,omitempty"`
	Changes    string               `json:"changes,omitempty"`   // in words
	Unchanged  string               `json:"unchanged,omitempty"` // why not, in words
}

// cameraErrors measures the cameras, and what calibration would make of them; nil where there is nothing to measure by,
// or nothing is asked for.
func (o *Options) cameraErrors(ctx context.Context, c *scene.Capture, note func(text string)) (*cameraErrors, error) {
	if o.Quick && o.Picture == "" {
		return nil, nil
	}
	if o.Picture != "" {
		if err := o.refusePicture(c); err != nil {
			return nil, err
		}
	}
	res, err := captured.CheckCameras(ctx, c, o.Device, o.Load.Cameras != captured.CamerasAuto, note)
	switch {
	case err != nil || res.Before == nil && o.Picture == "":
		return nil, err
	case res.Before == nil:
		return nil, fault.Data("draw errors of cameras", o.Scene, "leave out "+fault.Setting("picture"), "%s",
			res.Skipped)
	case o.Picture != "":
		if err := atomicfile.Write(o.Picture, res.WritePicture); err != nil {
			return nil, err
		}
	}
	return &cameraErrors{Given: res.Before, Calibrated: res.After, Apart: res.Apart, Changes: res.Text(),
		Unchanged: res.Reason()}, nil
}

// refusePicture refuses names that are not of an SVG, and those of the capture's own files.
func (o *Options) refusePicture(c *scene.Capture) error {
	if !strings.EqualFold(filepath.Ext(o.Picture), ".svg") {
		return fault.Usagef("give a name as in errors.svg", "%s: %s is not the name of an SVG", fault.Named("picture"),
			o.Picture)
	}
	if err := output.RefuseExisting("picture", o.Overwrite, o.Picture); err != nil {
		return err
	}
	if dir := filepath.Dir(o.Picture); output.Resolved(dir) != output.Resolved(c.Root) {
		return captured.RefuseInside(dir, "picture", c)
	}
	return nil
}

func (e *cameraErrors) text() string {
	if e == nil {
		return ""
	}
	text := fmt.Sprintf("%-9smean %.3f px, median %.3f px of %d observations\n", "errors:", e.Given.Mean,
		e.Given.Median, e.Given.Observations)
	if e.Changes != "" {
		text += fmt.Sprintf("%-9s%s\n", "train:", "calibrates cameras: "+e.Changes)
	} else if e.Unchanged != "" {
		text += fmt.Sprintf("%-9s%s\n", "train:", "keeps the cameras: "+e.Unchanged)
	}
	return text
}

// verdict says what to do next.
func (o *Options) verdict(r *inspect.Report) string {
	if r.Fatal() != nil {
		return "\nNot ready: fix what is marked fatal\n"
	}
	words := cli.QuotedAll(append([]string{"train", o.Scene, "-m", "OUT"}, o.PassedOn...))
	if r.Pointless() {
		words = append(words, cli.Switch("init"), "random")
	}
	text := fault.Command(strings.Join(words, " "))
	n := 0
	for _, p := range r.Problems {
		if p.Severity == inspect.SeverityWarning {
			n++
		}
	}
	if n > 0 {
		return fmt.Sprintf("\nReady, with %s above that may be worth fixing first: %s\n", cli.Count(n, "warning"),
			text)
	}
	return "\nReady: " + text + "\n"
}

func reportText(r *inspect.Report, rows bool) string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-9s%s\n", what+":", fmt.Sprintf(format, args...))
	}
	line("capture", "%s (%s)", r.Model, r.Format)
	photos := cli.Count(r.Photos, "photo")
	if n := len(r.Cameras); n != r.Photos {
		photos += fmt.Sprintf(" as %s", cli.Count(n, "camera"))
	}
	if r.HeldOut > 0 {
		photos += fmt.Sprintf(", %d of them held out", r.HeldOut)
	}
	if r.Masks > 0 {
		photos += fmt.Sprintf(", %d with masks", r.Masks)
	}
	line("photos", "%s, in %s", photos, r.Images)
	line("sizes", "%s", sizesText(r.Sizes))
	line("lenses", "%s", lensesText(r.Lenses))
	line("spread", "of the cameras: median %.4g, maximum %.4g (scene units)", r.MedianDistance, r.Extent)
	if r.Points > 0 {
		line("points", "%d, %.3g %% in view of a camera", r.Points, 100*r.PointsSeen)
	} else {
		line("points", "none")
	}
	b.WriteString("\n")
	if rows {
		b.WriteString(cameraTable(r.Cameras) + "\n")
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&b, "%s: %s\n", p.Severity, p)
		if p.Remedy != "" {
			fmt.Fprintf(&b, "    %s\n", p.Remedy)
		}
	}
	if len(r.Problems) == 0 {
		b.WriteString("no problems found\n")
	}
	return b.String()
}

// maxGroups is how many sizes are listed one by one.
const maxGroups = 6

func sizesText(sizes []inspect.SizeCount) string {
	if n := len(sizes); n > maxGroups {
		return fmt.Sprintf("%d different ones, %dx%d to %dx%d", n, sizes[0].Width, sizes[0].Height, sizes[n-1].Width,
			sizes[n-1].Height)
	}
	var parts []string
	for _, s := range sizes {
		parts = append(parts, fmt.Sprintf("%dx%d (%d)", s.Width, s.Height, s.Count))
	}
	return strings.Join(parts, ", ")
}

func lensesText(lenses []inspect.LensCount) string {
	var parts []string
	for _, l := range lenses {
		parts = append(parts, fmt.Sprintf("%s (%d)", l.Lens, l.Count))
	}
	return strings.Join(parts, ", ")
}

// cameraTable gives one line per camera.
func cameraTable(rows []inspect.CameraReport) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "camera\tsize\tlens\tfocal\tdistance\tpoints\tsharp\tbright")
	share := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return strconv.FormatFloat(*v, 'f', 2, 64)
	}
	for _, c := range rows {
		name := wording.Printable(c.Name)
		if c.HeldOut {
			name += " (held out)"
		}
		fmt.Fprintf(w, "%s\t%dx%d\t%s\t%.5g %.5g\t%.4g\t%d\t%s\t%s\n", name, c.Width, c.Height, c.Lens, c.Fx, c.Fy,
			c.Distance, c.Points, share(c.Sharpness), share(c.Brightness))
	}
	_ = w.Flush() // a strings.Builder never fails
	return b.String()
}
