package fault

import "strings"

// Setting names a setting in a text for users, as in Setting("init"): by the command's flag.
func Setting(name string) string { return "--" + name }

// Named names the settings that an error is about, as in "flag --init", or "flags --fps and --seconds".
func Named(names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = Setting(name)
	}
	if len(names) == 1 {
		return "flag " + list[0]
	}
	return "flags " + strings.Join(list, " and ")
}

// Command is a command of this program for the user to type, as in Command("eval OUT --compare").
func Command(line string) string { return "vksplat " + line }
