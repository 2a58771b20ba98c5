package train

import (
	"fmt"
	"slices"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/captured"
	"vksplat/internal/run/meter"
)

// A run that will take longer than this is told of a faster command, once, after
// so many steps.
const (
	adviceAfter   = 200
	adviceSeconds = 3600
)

// advise prints how the run could take less than an hour, if it will take more.
// It changes nothing: the user decides.
func (r *Run) advise(p *meter.Meter) {
	eta := p.EtaSeconds()
	if !(eta > adviceSeconds) {
		return
	}
	text := r.advice(p.Rate)
	r.Console.Note(fmt.Sprintf("%s to go at %s, more when the model grows; to be faster, stop this and give: %s",
		cli.Duration(eta), meter.RateText(p.Rate), text))
}

// advice is the same command with smaller photos, where they are large, and with
// as few steps as fit into most of an hour at a rate of steps per second.
func (r *Run) advice(rate float64) string {
	add := []string{}
	largest := 0
	for _, c := range r.Capture.Cameras {
		largest = max(largest, c.Width)
	}
	if next := smallerPhotos(r.Load.Downscale, largest); next != "" {
		add = append(add, "downscale", next)
		// A step's time goes with the pixels, but for what the splats take; half of
		// the gain is counted on.
		rate *= 2
	}
	share := 0.8 * adviceSeconds * rate / float64(r.Config.Iterations)
	for _, f := range []float64{1, 0.5, 0.25, 0.1, 0.05, 0.02, 0.01} {
		if f <= share || f == 0.01 {
			if f < 1 {
				add = append(add, "steps-scaler", fmt.Sprintf("%.3g", f*r.StepsScaler))
			}
			break
		}
	}
	return commandWith(r.Console, add, r.FlagNames)
}

// adviceWidth is the width in pixels above which smaller photos are advised.
const adviceWidth = 1000

// smallerPhotos is the factor that halves the photos once more, or "" when they are small
// or none is left. Auto is known by the width that it brings photos to.
func smallerPhotos(f captured.DownscaleFlag, width int) string {
	if width <= adviceWidth {
		return ""
	}
	switch f {
	case 0, 1:
		return "2"
	case 2:
		return "4"
	case 4:
		return "8"
	}
	return ""
}

// commandWith is the command line of this run with flags, each a name and a value, in place of those of the same name,
// as a shell takes it.
func commandWith(console *cli.Console, flags []string,
	namesOf func(flag string) (names []string, letter string)) string {
	args := slices.Clone(console.Args)
	end := slices.Index(args, "--")
	var rest []string
	if end >= 0 {
		args, rest = args[:end], args[end:]
	}
	var added []string
	for i := 0; i < len(flags); i += 2 {
		names, letter := []string{flags[i]}, ""
		if namesOf != nil {
			names, letter = namesOf(flags[i])
		}
		args = without(args, names, letter)
		added = append(added, cli.Switch(flags[i]), flags[i+1])
	}
	words := slices.Concat(args, added, rest)
	for i, w := range words {
		words[i] = cli.Quoted(w)
	}
	return fault.Command(strings.Join(words, " "))
}

// without removes a flag that takes a value, and its short and other names.
func without(args, names []string, letter string) []string {
	var kept []string
	for i := 0; i < len(args); i++ {
		name, long := strings.CutPrefix(args[i], "--")
		key, _, joined := strings.Cut(name, "=")
		switch {
		case long && slices.Contains(names, strings.ReplaceAll(key, "_", "-")):
			if !joined {
				i++
			}
		case letter != "" && args[i] == "-"+letter:
			i++
		case letter != "" && strings.HasPrefix(args[i], "-"+letter) && !strings.HasPrefix(args[i], "--"):
		default:
			kept = append(kept, args[i])
		}
	}
	return kept
}
