package desk

import (
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"vksplat/internal/fault"
)

// maxName bounds names of files and folders, in bytes.
const maxName = 120

// unfit are characters that Windows has in no name, the separators of folders aside.
const unfit = `:*?"<>|`

// devices are names that are devices on Windows, whatever their ending.
var devices = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true}

func init() {
	for n := range 10 {
		devices[fmt.Sprintf("com%d", n)], devices[fmt.Sprintf("lpt%d", n)] = true, true
	}
}

// isDevice reports whether Windows takes a name for that of a device.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	return devices[strings.ToLower(strings.TrimRight(base, " "))]
}

// isControl reports whether a character shows nothing of its own, as line breaks and marks that turn a text around.
func isControl(r rune) bool { return !unicode.IsPrint(r) }

// checkName refuses what cannot be the name of a folder on some system, and what would be hidden or read as a flag.
func checkName(what, name string) error {
	bad := func(hint, format string, args ...any) error {
		return fault.Usagef(hint, "name "+what+": "+format, args...)
	}
	const leaveOut = "leave it out"
	switch trimmed := strings.TrimSpace(name); {
	case trimmed == "":
		return bad("give it a name, such as garden-2", "the name is empty")
	case trimmed == "." || trimmed == "..":
		return bad("give it a name of its own, such as garden-2", "%q means another folder", trimmed)
	case strings.ContainsAny(name, `/\`):
		return bad("leave out the slash: a name is that of one folder", "%.80q holds a slash", name)
	case strings.ContainsFunc(name, isControl):
		return bad(leaveOut, "%.80q holds a control character, such as a line break", name)
	case strings.ContainsAny(name, unfit):
		return bad(leaveOut, "%.80q holds one of %s, which Windows does not have in names", name, unfit)
	case len(name) > maxName:
		return bad("shorten it", "the name takes %d bytes, %d is the limit", len(name), maxName)
	case strings.HasSuffix(name, ".") || trimmed != name:
		return bad(leaveOut, "%.80q begins or ends with a space, or ends with a dot, which Windows drops", name)
	case strings.ContainsAny(name[:1], ".-"):
		return bad(leaveOut, "%.80q begins with %q: it would be hidden, or read as a flag", name, name[:1])
	case isDevice(name):
		return bad("choose another, such as my-"+name, "%q is a device on Windows", name)
	}
	return nil
}

// plainName makes a name that checkName takes of what a browser sends or a disk has, "" where nothing is left.
func plainName(name string) string {
	name = filepath.Base(filepath.ToSlash(strings.ReplaceAll(name, `\`, "/")))
	name = strings.Map(func(r rune) rune {
		if isControl(r) || strings.ContainsRune("/"+unfit, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimRight(strings.TrimLeft(strings.TrimSpace(name), ".- "), ". ")
	if isDevice(name) {
		name = "_" + name
	}
	if len(name) > maxName {
		ext := filepath.Ext(name)
		name = strings.ToValidUTF8(name[:max(1, maxName-len(ext))], "") + ext
	}
	return name
}
