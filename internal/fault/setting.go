package fault

import "strings"

// How texts write a setting's name, and what they call it.
var (
	spell = func(name string) string { return name }
	noun  = "setting"
	// commands has what texts write for commands that the reader need not type.
	commands map[string]string
)

// SpellSettings says how texts write settings and what they call one: the command has flags for them, other programs
// need not. It is called once, before anything else runs.
func SpellSettings(called string, how func(name string) string) { noun, spell = called, how }

// SpellCommands says what texts write for commands, by their lines: programs may have functions for them. It is called
// once, before anything else runs.
func SpellCommands(words map[string]string) { commands = words }

// Setting names a setting in a text for users, as in Setting("init"): the command writes the flag, "--init".
func Setting(name string) string { return spell(name) }

// Named names the settings that an error is about, behind what they are called: the command writes "flag --init", or
// "flags --fps and --seconds".
func Named(names ...string) string {
	list := make([]string, len(names))
	for i, name := range names {
		list[i] = spell(name)
	}
	if len(names) == 1 {
		return noun + " " + list[0]
	}
	return noun + "s " + strings.Join(list, " and ")
}

// Command is a command of this program for the user to type, as in Command("eval OUT --compare"). It has flags whoever
// reads it, unless SpellCommands has other words for it.
func Command(line string) string {
	if words, known := commands[line]; known {
		return words
	}
	return "vksplat " + line
}
