package cli

import (
	"regexp"
	"strings"

	"vksplat/internal/fault"
)

// Dashed is a setting's name as that of a flag.
func Dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

var settingInText = regexp.MustCompile(`\{\w+\}`)

// WithSettings names the settings that a text of package recipe has in braces, as fault.Setting does.
func WithSettings(text string) string {
	return settingInText.ReplaceAllStringFunc(text, func(name string) string {
		return fault.Setting(Dashed(strings.Trim(name, "{}")))
	})
}

// Flag is a word of a command line of this program, for a process that it starts or that the user shall start.
func Flag(name, value string) string { return Switch(name) + "=" + value }

// Switch is Flag without a value.
func Switch(name string) string { return "--" + name }
