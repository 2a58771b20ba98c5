package cli

import (
	"regexp"
	"strings"
)

// Dashed is a setting's name as that of a flag.
func Dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

var settingInText = regexp.MustCompile(`\{\w+\}`)

// WithFlags writes the settings that a text of package pipeline has in braces as flags.
func WithFlags(text string) string {
	return settingInText.ReplaceAllStringFunc(text, func(name string) string {
		return "--" + Dashed(strings.Trim(name, "{}"))
	})
}
