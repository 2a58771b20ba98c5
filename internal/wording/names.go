package wording

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName bounds a name that a page sends or PlainName makes, in bytes: what is written beside a file has longer ones.
const MaxName = 120

// unfit are characters that Windows has in no name, the separators of folders aside.
const unfit = `:*?"<>|`

// devices are names that are devices on Windows, whatever their ending.
var devices = map[string]bool{"con": true, "prn": true, "aux": true, "nul": true, "conin$": true, "conout$": true}

func init() {
	for _, n := range "0123456789¹²³" {
		devices["com"+string(n)], devices["lpt"+string(n)] = true, true
	}
}

func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	return devices[strings.ToLower(strings.TrimRight(base, " "))]
}

// isHidden reports whether a character shows nothing of its own: line breaks, marks that turn a text around, blanks
// without width, letters that are blank.
func isHidden(r rune) bool {
	return !unicode.IsPrint(r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) || r == '\u2800'
}

// BadName says why a name suits no file or folder on some system, would be hidden or read as a flag, and what helps;
// "" for a name that suits.
func BadName(name string) (why, hint string) {
	const leaveOut = "leave it out"
	quoted := fmt.Sprintf("%.80q", name)
	switch trimmed := strings.TrimSpace(name); {
	case strings.TrimLeftFunc(trimmed, unicode.IsMark) == "":
		return "the name is empty", "give it a name, such as garden-2"
	case trimmed == "." || trimmed == "..":
		return quoted + " means another folder", "give it a name of its own, such as garden-2"
	case strings.ContainsAny(name, `/\`):
		return quoted + " holds a slash", "leave out the slash: a name is that of one file or folder"
	case strings.ContainsFunc(name, isHidden), !utf8.ValidString(name):
		return quoted + " holds a control character or one that does not show", leaveOut
	case strings.ContainsAny(name, unfit):
		return quoted + " holds one of " + unfit + ", which Windows does not have in names", leaveOut
	case strings.HasSuffix(name, ".") || trimmed != name:
		return quoted + " begins or ends with a space, or ends with a dot, which Windows drops", leaveOut
	case strings.ContainsAny(name[:1], ".-"):
		return fmt.Sprintf("%s begins with %q: it would be hidden, or read as a flag", quoted, name[:1]), leaveOut
	case isDevice(name):
		return quoted + " is a device on Windows", "choose another, such as my-" + name
	}
	return "", ""
}

// PlainName makes a name that BadName finds nothing in of what a browser sends or a disk has, "" where nothing is left.
func PlainName(name string) string {
	name = path.Base(strings.ReplaceAll(name, `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if isHidden(r) || strings.ContainsRune("/"+unfit, r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "_"))
	name = strings.TrimRight(strings.TrimLeftFunc(name, func(r rune) bool {
		return strings.ContainsRune(".- ", r) || unicode.IsMark(r)
	}), ". ")
	if room := MaxName - len("_"); len(name) > room {
		ext := path.Ext(name)
		if len(ext) > room/2 {
			ext = "" // which is none, but a name with a dot
		}
		name = strings.TrimRight(strings.ToValidUTF8(name[:room-len(ext)], ""), ". ") + ext
	}
	if isDevice(name) {
		name = "_" + name
	}
	return name
}
