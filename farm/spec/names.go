package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vksplat/internal/wording"
)

// Forms of values. They are those of job.schema.json, too.
var (
	// Words name roots and pools.
	wordForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	// Keys are relative: no empty part, none that begins with a dot, no backslash, colon or control character.
	keyForm = regexp.MustCompile(`^[^\x00-\x1f\x7f-\x9f/\\:.@][^\x00-\x1f\x7f-\x9f/\\:]*` +
		`(/[^\x00-\x1f\x7f-\x9f/\\:.][^\x00-\x1f\x7f-\x9f/\\:]*)*$`)
	spanForm  = regexp.MustCompile(`^([0-9]{1,9}(\.[0-9]{1,3})?(ms|s|m|h))+$`)
	frameForm = regexp.MustCompile(`^[0-9]{1,9}(-[0-9]{1,9}(x[0-9]{1,9})?)?$`)
	textForm  = regexp.MustCompile(`^[^\x00-\x1f\x7f-\x9f/\\]*$`)
)

const (
	maxName    = 64   // characters
	maxKey     = 1024 // bytes
	maxKeyPart = 255  // bytes
	maxSpan    = 720 * time.Hour
)

// badName says why a text is no name of a job or task, which is that of a folder on every system, and what helps.
func badName(s string) (why, hint string) {
	switch {
	case utf8.RuneCountInString(s) > maxName:
		return fmt.Sprintf("%.80q has more than %d characters", s, maxName), "shorten it"
	case strings.HasPrefix(s, "@"):
		return fmt.Sprintf("%.80q begins with @, as references to tasks do", s), "leave it out"
	}
	return wording.BadName(s)
}

// CheckKey refuses what is no key below a root.
func CheckKey(key string) error {
	if len(key) > maxKey || !utf8.ValidString(key) || !keyForm.MatchString(key) {
		return fmt.Errorf("%.80q is not a key: keys are relative, as in scans/garden, without . in front of a part "+
			"and without \\ : or control characters", key)
	}
	for part := range strings.SplitSeq(key, "/") {
		if len(part) > maxKeyPart {
			return fmt.Errorf("%.40q... is not a key: a part of it has more than %d bytes", key, maxKeyPart)
		}
	}
	return nil
}

// span reads a time as in 1h30m.
func span(s string) (time.Duration, error) {
	if !spanForm.MatchString(s) {
		return 0, fmt.Errorf("%.40q is not a duration", s)
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 || d > maxSpan {
		return 0, fmt.Errorf("%.40q is not a duration above 0 and up to %v", s, maxSpan)
	}
	return d, nil
}

// Frames is a choice of pictures: every Step-th from First to Last.
type Frames struct {
	First int `json:"first"`
	Last  int `json:"last"`
	Step  int `json:"step"`
}

// ParseFrames reads A, A-B or A-BxN.
func ParseFrames(s string) (Frames, error) {
	if !frameForm.MatchString(s) {
		return Frames{}, fmt.Errorf("%.40q is not a range of frames", s)
	}
	f := Frames{Step: 1}
	first, rest, isRange := strings.Cut(s, "-")
	f.First, _ = strconv.Atoi(first) // nine digits
	f.Last = f.First
	if last, step, hasStep := strings.Cut(rest, "x"); isRange {
		f.Last, _ = strconv.Atoi(last)
		if hasStep {
			f.Step, _ = strconv.Atoi(step)
		}
	}
	if f.Last < f.First || f.Step < 1 {
		return Frames{}, fmt.Errorf("%q is not a range of frames: it goes backwards or nowhere", s)
	}
	return f, nil
}

// Count is how many pictures these are; of no range, none.
func (f Frames) Count() int {
	if f.Step < 1 {
		return 0
	}
	return (f.Last-f.First)/f.Step + 1
}

func (f Frames) String() string {
	switch {
	case f.Step < 1:
		return ""
	case f.Step == 1:
		return fmt.Sprintf("%d-%d", f.First, f.Last)
	}
	return fmt.Sprintf("%d-%dx%d", f.First, f.Last, f.Step)
}

// Escape makes of a name one that consists of letters, digits, - and _ alone, for names of files and keys: other bytes
// become = and two hexadecimal digits. Different names stay different.
func Escape(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "=%02X", c)
	}
	return b.String()
}

// fold makes names equal that some file systems take for the same.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }

// pathSafe makes a text part of a folder's name on every system: other signs become dashes, and none ends with a space
// or a dot.
func pathSafe(s string) string {
	return strings.TrimRight(strings.Map(func(c rune) rune {
		if unicode.IsLetter(c) || unicode.IsDigit(c) || unicode.IsMark(c) || strings.ContainsRune(" ._+-", c) {
			return c
		}
		return '-'
	}, s), " .")
}
