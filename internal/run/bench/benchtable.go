package bench

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
	"vksplat/pipeline"
)

func printScene(console *cli.Console, s *benchScene) {
	c := &s.Counts
	console.Printf("\n%s: %s, %s of %s, SH degree %d, %d steps a round\n", s.Name, cli.Count(c.Splats, "splat"),
		cli.Count(s.Photos, "photo"), s.Resolution, c.SHDegree, s.Steps)
	console.Printf("a view: %s visible, %d (tile, splat) pairs of which %d are looked at; a pixel looks at %.0f "+
		"splats and blends %.0f; patches visit splats %d times, and %d on the way back\n",
		cli.Count(c.Visible, "splat"), c.Isects, c.SeenIsects, float64(c.SeenPairs)/float64(c.Pixels),
		float64(c.BlendedPairs)/float64(c.Pixels), c.Visits, c.VisitsBwd)
	if len(s.Passes) > 0 {
		printPasses(console, s)
		console.Printf("passes %s, their floors %.4f ms\n", milliseconds(s.PassesMS), s.FloorMS)
		console.Printf("with timestamps a step is %s: the passes and gaps above; timestamp inflation is what that "+
			"is more than without\n", milliseconds(s.TimedMS))
	}
	console.Printf("step without timestamps %s, host %s; %.1f steps/s (%.1f to %.1f); device memory %s at the peak\n",
		milliseconds(s.WallMS), milliseconds(s.HostMS), s.StepsPerS.Median, s.StepsPerS.Min, s.StepsPerS.Max,
		pipeline.BytesText(s.PeakBytes))
}

// printPasses prints the table of passes, and what makes up a step with them.
func printPasses(console *cli.Console, s *benchScene) {
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "pass\tms\tmin\tmax\tof step\tdispatches\tMB\tM instr.\tM shared\tGB/s\tof copy\t"+
		"floor ms\tx floor\tbound by\t")
	for _, p := range s.Passes {
		_, _ = fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%.4f\t%.1f%%\t%.4g\t", p.Name, p.MS.Median, p.MS.Min, p.MS.Max,
			100*p.Share, p.Dispatches)
		if p.FloorMS == 0 {
			_, _ = fmt.Fprintln(w, "\t\t\t\t\t\t\t\t")
			continue
		}
		_, _ = fmt.Fprintf(w, "%.2f\t%.1f\t%.1f\t%.1f\t%.1f%%\t%.4f\t%.1f\t%s\t\n", p.Bytes/1e6,
			p.Instructions/1e6, (p.SharedWords+p.Shuffles)/1e6, p.BytesPerS/1e9, 100*p.OfCopy, p.FloorMS, p.OverFloor,
			p.Bound)
	}
	gaps, inflation := s.TimedMS.Median-s.PassesMS.Median, s.TimedMS.Median-s.WallMS.Median
	for _, r := range []struct {
		name string
		ms   float64
	}{{"gaps", gaps}, {"less timestamp inflation", -inflation}, {"step", s.WallMS.Median}} {
		_, _ = fmt.Fprintf(w, "%s\t%.4f\t\t\t%.1f%%\t\n", r.name, r.ms,
			100*r.ms/s.WallMS.Median)
	}
	_ = w.Flush()
}

func milliseconds(s spread) string {
	return fmt.Sprintf("%.4f ms (%.4f to %.4f)", s.Median, s.Min, s.Max)
}

// compareBench prints how times changed, as ratios to those before: below 1 is faster. Steps that take more than most
// times as long are an error, and so are scenes that were not measured before; not if most is 0.
func compareBench(console *cli.Console, before, now *benchFile, most float64) error {
	if before.Device != now.Device {
		console.Warn(fmt.Sprintf("the results to compare with are from %s, %s", before.Device.Name,
			before.Device.Driver))
	}
	var errs []error
	for _, s := range now.Scenes {
		i := slices.IndexFunc(before.Scenes, func(b *benchScene) bool { return b.Name == s.Name })
		if i < 0 {
			missing := s.Name + " is not in the results to compare with"
			if most == 0 {
				console.Warn(missing)
			} else {
				errs = append(errs, fault.WithHint(errors.New(missing), "measure it for "+fault.Setting("against")+
					", too, or leave out "+fault.Setting("max-slowdown")))
			}
			continue
		}
		ratio := compareScene(console, before.Scenes[i], s)
		if most > 0 && ratio > most {
			errs = append(errs, slower(s.Name, ratio, most))
		}
	}
	return errors.Join(errs...)
}

// compareScene prints the ratios of one scene and returns that of the whole step.
func compareScene(console *cli.Console, before, now *benchScene) float64 {
	console.Printf("\n%s, against before:\n", now.Name)
	w := tabwriter.NewWriter(console.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "pass\tbefore\tnow\tratio\t")
	row := func(name string, b, n float64) {
		_, _ = fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%s\t\n", wording.PrintableLines(name), b, n, ratioText(b, n))
	}
	for _, p := range now.Passes {
		b := 0.0
		if i := slices.IndexFunc(before.Passes, func(x benchPass) bool { return x.Name == p.Name }); i >= 0 {
			b = before.Passes[i].MeanMS
		}
		row(p.Name, b, p.MeanMS)
	}
	for _, p := range before.Passes {
		if !slices.ContainsFunc(now.Passes, func(x benchPass) bool { return x.Name == p.Name }) {
			row(p.Name, p.MeanMS, 0)
		}
	}
	row("passes", before.PassesMS.Median, now.PassesMS.Median)
	row("step", before.WallMS.Median, now.WallMS.Median)
	row("host", before.HostMS.Median, now.HostMS.Median)
	_ = w.Flush()
	console.Printf("device memory at the peak: before %s, now %s\n", pipeline.BytesText(before.PeakBytes),
		pipeline.BytesText(now.PeakBytes))
	if before.Counts.Splats != now.Counts.Splats || before.Resolution != now.Resolution {
		console.Warn(fmt.Sprintf("%s: before, it was %s and photos of %s", now.Name,
			cli.Count(before.Counts.Splats, "splat"), before.Resolution))
	}
	if before.Precision != now.Precision {
		console.Warn(fmt.Sprintf("%s: before, precision was %s, it is %s now", now.Name, before.Precision,
			now.Precision))
	}
	return now.WallMS.Median / before.WallMS.Median
}

func ratioText(before, now float64) string {
	switch {
	case before <= 0:
		return "new"
	case now <= 0:
		return "gone"
	}
	return fmt.Sprintf("%.3f", now/before)
}
