package page

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// longest is what is still said of times that are guessed, in seconds.
const longest = 100 * 24 * 3600

// leftText words a guess in seconds.
func leftText(seconds float64) string {
	if seconds > longest {
		return "months"
	}
	return spanText(time.Duration(seconds * float64(time.Second)))
}

// plural counts things.
func plural(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return strconv.Itoa(n) + " " + thing
}

// ago words how long something is past.
func ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return spanText(max(time.Since(t), 0)) + " ago"
}

// spanText words a time by its largest units.
func spanText(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return strings.TrimSpace(fmt.Sprintf("%d days", int(d.Hours())/24))
}

// RateText words how many steps are done a second, "" where that is not known or of no interest.
func RateText(rate float64, unit string) string {
	switch {
	case !(rate > 0) || unit == "":
		return ""
	case rate >= 10:
		return strconv.FormatFloat(rate, 'f', 0, 64) + " " + unit + "/s"
	}
	return strconv.FormatFloat(rate, 'g', 2, 64) + " " + unit + "/s"
}

// ratesText words rates by unit.
func ratesText(rates map[string]float64) string {
	var words []string
	for _, unit := range slices.Sorted(maps.Keys(rates)) {
		if text := RateText(rates[unit], unit); text != "" {
			words = append(words, text)
		}
	}
	return strings.Join(words, ", ")
}

// sizeText words bytes.
func sizeText(n int64) string {
	const unit = 1 << 10
	size, name := float64(n)/unit/unit, "MiB"
	if size >= unit {
		size, name = size/unit, "GiB"
	}
	digits := 1
	if size >= 100 {
		digits = 0
	}
	return strconv.FormatFloat(size, 'f', digits, 64) + " " + name
}

// percentText words a share.
func percentText(share *float64) string { return strconv.FormatFloat(100**share, 'f', 0, 64) + " %" }
