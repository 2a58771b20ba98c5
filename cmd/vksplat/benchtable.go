package main

import (
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
)

// printScene prints what was measured.
func (a *app) printScene(s *benchScene) {
	a.printf("\n%s: %s, %s of %s, %s visible, %d (tile, splat) pairs\n", s.Name, count(s.Splats, "splat"), count(s.Photos, "photo"), s.Resolution, count(s.Visible, "splat"), s.Isects)
	if len(s.Passes) > 0 {
		w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
		_, _ = fmt.Fprintln(w, "pass\tms\tmin\tmax\tshare\tdispatches\t")
		for _, p := range s.Passes {
			_, _ = fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%.4f\t%.1f%%\t%d\t\n", p.Name, p.MS.Median, p.MS.Min, p.MS.Max, 100*p.Share, p.Dispatches)
		}
		_ = w.Flush()
		a.printf("passes %s, gap %s, ", milliseconds(s.PassesMS), milliseconds(s.GapMS))
	}
	a.printf("step %s, host %s; %.1f steps/s (%.1f to %.1f); device memory %s at the peak\n",
		milliseconds(s.WallMS), milliseconds(s.HostMS), s.StepsPerS.Median, s.StepsPerS.Min, s.StepsPerS.Max, bytesText(s.PeakBytes))
}

func milliseconds(s spread) string {
	return fmt.Sprintf("%.4f ms (%.4f to %.4f)", s.Median, s.Min, s.Max)
}

// compareBench prints how times changed, as ratios to those before: below 1 is faster. Steps that take more than most times as long, unless that is 0, are
// an error.
func (a *app) compareBench(before, now *benchFile, most float64) error {
	if before.Device != now.Device {
		a.warn(fmt.Sprintf("the results to compare with are of %s, %s", before.Device.Name, before.Device.Driver))
	}
	var errs []error
	for _, s := range now.Scenes {
		i := slices.IndexFunc(before.Scenes, func(b *benchScene) bool { return b.Name == s.Name })
		if i < 0 {
			a.warn(s.Name + " is not in the results to compare with")
			continue
		}
		ratio := a.compareScene(before.Scenes[i], s)
		if most > 0 && ratio > most {
			errs = append(errs, slower(s.Name, ratio, most))
		}
	}
	return errors.Join(errs...)
}

// compareScene prints the ratios of one scene and returns that of the whole step.
func (a *app) compareScene(before, now *benchScene) float64 {
	a.printf("\n%s, against before:\n", now.Name)
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(w, "pass\tbefore\tnow\tratio\t")
	row := func(name string, b, n float64) {
		_, _ = fmt.Fprintf(w, "%s\t%.4f\t%.4f\t%s\t\n", name, b, n, ratioText(b, n))
	}
	for _, p := range now.Passes {
		b := 0.0
		if i := slices.IndexFunc(before.Passes, func(x benchPass) bool { return x.Name == p.Name }); i >= 0 {
			b = before.Passes[i].MS.Median
		}
		row(p.Name, b, p.MS.Median)
	}
	for _, p := range before.Passes {
		if !slices.ContainsFunc(now.Passes, func(x benchPass) bool { return x.Name == p.Name }) {
			row(p.Name, p.MS.Median, 0)
		}
	}
	row("passes", before.PassesMS.Median, now.PassesMS.Median)
	row("step", before.WallMS.Median, now.WallMS.Median)
	_ = w.Flush()
	if before.Splats != now.Splats || before.Isects != now.Isects {
		a.printf("before: %s, %d pairs\n", count(before.Splats, "splat"), before.Isects)
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
