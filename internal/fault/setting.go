package fault

import "strings"

// Setting names a setting in a text for users, as in Setting("init"): by the command's flag. A Speller has other words
// for readers who do not type flags.
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

// program begins the command lines in texts.
const program = "vksplat"

// Command is a command of this program for the user to type, as in Command("eval OUT --compare").
func Command(line string) string { return program + " " + line }

// Speller has words for readers who call this program's packages and type no commands.
type Speller struct {
	Noun     string                   // what a setting is called
	Setting  func(name string) string // for a flag's name
	Commands map[string]string        // for commands that need not be typed, by their lines
}

// Spell puts the speller's words in the place of the settings and commands that a text names. The flags of other
// command lines stay: a line ends with its clause.
func (s *Speller) Spell(text string) string {
	var b strings.Builder
	inCommand := false
	for text != "" {
		start := len(text) - len(strings.TrimLeft(text, " \n(\"'"))
		inCommand = inCommand && !strings.Contains(text[:start], "\n")
		b.WriteString(text[:start])
		text = text[start:]
		if words, rest, known := s.command(text); known {
			b.WriteString(words)
			text = rest
			continue
		}
		end := strings.IndexAny(text, " \n")
		if end < 0 {
			end = len(text)
		}
		word := text[:end]
		text = text[end:]
		inCommand = inCommand || word == program
		if !inCommand {
			b.WriteString(s.word(word, text))
		} else {
			b.WriteString(word)
		}
		inCommand = inCommand && strings.TrimRight(word, ",;:.)") == word
	}
	return b.String()
}

// command gives the words for the command that begins a text, and the text behind it.
func (s *Speller) command(text string) (words, rest string, known bool) {
	for line, words := range s.Commands {
		rest, begins := strings.CutPrefix(text, Command(line))
		if begins && (rest == "" || strings.ContainsAny(rest[:1], " \n,;:.)")) {
			return words, rest, true
		}
	}
	return "", text, false
}

// word spells a word that is in no command, in front of a text.
func (s *Speller) word(word, next string) string {
	if name := flagName(word); name != "" {
		return s.Setting(name) + word[len(Setting(name)):]
	}
	if plural, is := strings.CutPrefix(word, "flag"); is && (plural == "" || plural == "s") &&
		flagName(strings.TrimLeft(next, " ")) != "" {
		return s.Noun + plural
	}
	return word
}

func flagName(text string) string {
	name, is := strings.CutPrefix(text, "--")
	if !is {
		return ""
	}
	end := strings.IndexFunc(name, func(c rune) bool {
		return c != '-' && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
	if end >= 0 {
		name = name[:end]
	}
	return name
}
