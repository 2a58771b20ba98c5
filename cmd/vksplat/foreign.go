package main

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// People paste command lines of the trainers that they come from. Flags of those that mean the same are taken, those
// that change no model are left out with a note, and others are refused with what stands for them here, all at once.

// meaning is what a flag of another trainer is here: exactly one of these, or nothing where it is the default.
type meaning struct {
	words []string // flags of train
	scene string
	needless,
	refused string // why
}

func as(words ...string) meaning     { return meaning{words: words} }
func needless(why string) meaning    { return meaning{needless: why} }
func refused(instead string) meaning { return meaning{refused: instead} }
func sceneAt(folder string) meaning  { return meaning{scene: folder} }

// foreignFlag is a flag that train does not have.
type foreignFlag struct {
	bare bool // it needs no value; True or False may follow
	mean func(value string, l *foreignLine) meaning
}

// foreignLine is a command line that is being translated.
type foreignLine struct {
	command string
	table   []optionGroup           // of the command's own flags
	letters map[string]*foreignFlag // other flags, by their letters
	flags   map[string]*foreignFlag // and by their names
	aliases map[string]string
	rest    []string // not read yet

	words   []string // flags of train
	places  []string // words that are no flags
	scene   string   // by a flag; of render and eval the model
	recipe  []string // flags that the program or method stands for, where none is given
	foreign bool     // there is something to translate
	notes   []string
	unknown []string // flags
	refused []string // flags, with what to do instead
}

// translated turns the arguments of train, render and eval with flags of other trainers into those that mean the same.
// Other command lines it returns as they are.
func translated(args []string) (result, notes []string, err error) {
	l := lineOf(args)
	if l == nil || slices.ContainsFunc(args, asksForHelp) {
		return args, nil, nil
	}
	for len(l.rest) > 0 && l.rest[0] != "--" {
		l.read(l.next())
	}
	l.name()
	switch {
	case len(l.refused) > 0 || len(l.unknown) > 1 || l.foreign && len(l.unknown) > 0:
		return nil, nil, l.refusal()
	case !l.foreign || len(l.unknown) > 0: // one unknown flag has an error of its own, with a guess
		return args, nil, nil
	}
	result = slices.Concat([]string{l.command}, l.places, l.words, l.rest)
	read := "read as: " + fault.Command(strings.Join(cli.QuotedAll(result), " "))
	return result, append([]string{read}, l.notes...), nil
}

func asksForHelp(word string) bool {
	return word == "-h" || strings.HasPrefix(strings.ReplaceAll(word, "_", "-"), "--help")
}

// next takes the next word off the line.
func (l *foreignLine) next() string {
	word := l.rest[0]
	l.rest = l.rest[1:]
	return word
}

// read translates a word and the values behind it.
func (l *foreignLine) read(word string) {
	name, value, joined := strings.Cut(word, "=")
	switch {
	case len(word) == 2 && word[0] == '-' && word[1] != '-':
		l.short(word)
	case !strings.HasPrefix(word, "--"):
		if strings.HasPrefix(word, "-") && len(word) > 2 {
			l.shortJoined(word)
			return
		}
		l.places = append(l.places, word)
	default:
		l.long(name[2:], value, joined)
	}
}

// long translates a flag that begins with two dashes.
func (l *foreignLine) long(name, value string, joined bool) {
	typed := cli.Switch(name)
	for _, plain := range endings(strings.ToLower(strings.ReplaceAll(name, "_", "-"))) {
		if o := find(l.table, canonical(plain, l.aliases)); o != nil {
			l.foreign = l.foreign || plain != strings.ReplaceAll(name, "_", "-")
			l.own(o, name, value, joined)
			return
		}
		f, negated := l.flags[plain], false
		if base, no := strings.CutPrefix(plain, "no-"); f == nil && no {
			f, negated = l.flags[base], true
		}
		if f == nil {
			continue
		}
		switch {
		case negated:
			value = no
		case f.bare && !joined && len(l.rest) > 0 && truths[l.rest[0]] != "":
			value = truths[l.next()]
		case f.bare && !joined:
			value = yes
		case f.bare:
			value = truths[value]
		case !joined:
			value = l.value()
		}
		l.take(typed, value, f)
		return
	}
	l.unknown = append(l.unknown, typed)
	if !joined && len(l.rest) > 0 && !strings.HasPrefix(l.rest[0], "-") {
		l.next() // perhaps its value: the line is refused anyway
	}
}

// endings are a name and what stands behind each of its dots: sections of nerfstudio and gsplat.
func endings(name string) (list []string) {
	for list = []string{name}; ; list = append(list, name) {
		_, after, found := strings.Cut(name, ".")
		if !found {
			return list
		}
		name = after
	}
}

// Values of flags that may stand without one.
const (
	yes = "true"
	no  = "false"
)

// truths are words behind such flags.
var truths = map[string]string{"True": yes, "False": no, "true": yes, "false": no}

// value takes the words that are a flag's value: the next one, and more numbers behind a number, which make a list.
func (l *foreignLine) value() string {
	if len(l.rest) == 0 || strings.HasPrefix(l.rest[0], "-") && !negative.MatchString(l.rest[0]) {
		return ""
	}
	words := []string{l.next()}
	for digits.MatchString(words[0]) && len(l.rest) > 0 && digits.MatchString(l.rest[0]) && !exists(l.rest[0]) {
		words = append(words, l.next())
	}
	return strings.Join(words, ",")
}

var (
	digits   = regexp.MustCompile(`^[0-9]+$`)
	negative = regexp.MustCompile(`^-[0-9.]`)
)

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// own copies a flag of train. Lists may have blanks, and Python has words of its own for truth.
func (l *foreignLine) own(o *option, name, value string, joined bool) {
	typed := cli.Switch(name)
	if strings.Contains(name, ".") || strings.ToLower(name) != name {
		typed = cli.Switch(o.name)
	}
	switch {
	case joined:
		typed += "=" + value
	case o.kind == kindBool && len(l.rest) > 0 && (l.rest[0] == "True" || l.rest[0] == "False"):
		l.foreign = true
		typed += "=" + truths[l.next()]
	case o.bare != "" || len(l.rest) == 0:
	case (o.steps != nil || o.name == "iteration") && l.rest[0] == "-1": // never, and of models the last
		l.foreign, l.rest = true, l.rest[1:]
		return
	case o.steps != nil:
		before := len(l.rest)
		l.words = append(l.words, typed, l.value())
		l.foreign = l.foreign || before-len(l.rest) > 1
		return
	default:
		value := l.next()
		ours, known := foreignValues[o.name][value]
		l.foreign = l.foreign || known
		if known {
			value = ours
		}
		l.words = append(l.words, typed, value)
		return
	}
	l.words = append(l.words, typed)
}

// short translates a flag of one letter. Several trainers have the same letter for different things: their values tell.
func (l *foreignLine) short(word string) {
	if f := l.letters[word[1:]]; f != nil && !(word == "-i" && !l.counts()) {
		value := yes
		if !f.bare {
			value = l.value()
		}
		l.take(word, value, f)
		return
	}
	l.words = append(l.words, word)
	o := findBy(l.table, func(o option) bool { return o.short == word[1:] })
	if o != nil && o.bare == "" && len(l.rest) > 0 {
		value := l.next()
		if word == "-r" && value == "-1" { // INRIA's word
			value, l.foreign = "auto", true
		}
		l.words = append(l.words, value)
	}
}

// shortJoined reads a letter with its value in the same word, as -sSCENE, or a mistake.
func (l *foreignLine) shortJoined(word string) {
	if f := l.letters[word[1:2]]; f == nil || f.bare || word[1] == 'i' {
		l.words = append(l.words, word)
		return
	}
	l.rest = append([]string{strings.TrimPrefix(word[2:], "=")}, l.rest...)
	l.short(word[:2])
}

// counts reports whether the next word is a number, and no folder.
func (l *foreignLine) counts() bool {
	return len(l.rest) > 0 && digits.MatchString(l.rest[0]) && !exists(l.rest[0])
}

// take adds what a flag means.
func (l *foreignLine) take(typed, value string, f *foreignFlag) {
	l.foreign = true
	if value == "" {
		needs := "it needs a value"
		if f.bare { // and had one that is neither
			needs = "it is True or False"
		}
		l.refused = append(l.refused, "flag "+typed+": "+needs)
		return
	}
	m := f.mean(value, l)
	if !f.bare {
		typed += " " + strings.ReplaceAll(value, ",", " ")
	}
	l.words = append(l.words, m.words...)
	switch {
	case m.scene != "":
		l.scene = m.scene
	case m.needless != "":
		l.notes = append(l.notes, typed+" does nothing here: "+m.needless)
	case m.refused != "":
		l.refused = append(l.refused, "flag "+typed+": "+m.refused)
	}
}

// programs are the first words of other trainers' command lines, and variables before them.
var programs = regexp.MustCompile(`^([A-Z][A-Z0-9_]*=.*|(.*/)?(python[0-9.]*|(train|simple_trainer)\.py|ns-train|` +
	`brush(_app)?|opensplat|lichtfeld(-studio)?|LichtFeld-Studio)(\.exe)?)$`)

// methods are recipes and readers of captures that others name by a word of its own.
var methods = map[string][]string{
	"default": published, "mcmc": {"--preset", "mcmc"}, "splatfacto": {"--preset", "3dgs", "--eval"},
	"splatfacto-big": {"--preset", "3dgs", "--eval"}, "splatfacto-mcmc": {"--preset", "mcmc", "--eval"},
	"colmap": {"--format", "colmap"}, "nerfstudio-data": {"--format", "transforms"},
	"blender-data": {"--format", "blender"},
}

// published is the recipe of INRIA's train.py, which has no word for it, and of its followers.
var published = []string{"--preset", "3dgs"}

// ofPublished are programs of which it is the only recipe.
var ofPublished = regexp.MustCompile(`^(.*/)?(train\.py|opensplat(\.exe)?)$`)

// name finds the scene among the words that are no flags, and the recipe.
func (l *foreignLine) name() {
	for len(l.places) > 0 && programs.MatchString(l.places[0]) && (len(l.places) > 1 || l.scene != "") {
		if ofPublished.MatchString(l.places[0]) {
			l.recipe = published
		}
		l.places, l.foreign = l.places[1:], true
	}
	if l.command != "train" {
		l.nameModel()
		return
	}
	if !l.gives("preset", "config", "strategy") {
		l.words = slices.Concat(l.recipe, l.words)
	}
	if l.scene == "" {
		return
	}
	var kept []string
	for _, word := range l.places {
		if flags, known := methods[word]; known {
			l.words = append(slices.Clone(flags), l.words...)
		} else {
			kept = append(kept, word)
		}
	}
	l.places = append([]string{l.scene}, kept...)
}

// refusal lists all flags that cannot be taken.
func (l *foreignLine) refusal() error {
	var names []string
	for _, g := range l.table {
		for _, o := range g.options {
			names = append(names, o.name)
		}
	}
	var list []error
	for _, typed := range l.unknown {
		text := "unknown flag: " + typed
		if nearest := wording.Nearest(typed[2:], names); nearest != "" {
			text += " (did you mean --" + nearest + "?)"
		}
		list = append(list, errors.New(text))
	}
	for _, text := range l.refused {
		list = append(list, errors.New(text))
	}
	return fault.Usagef("docs/coming-from.md translates command lines of other trainers; see: "+
		fault.Command(l.command+" --help-all"), "%w", errors.Join(list...))
}

// gives reports whether the line has one of the flags.
func (l *foreignLine) gives(names ...string) bool {
	return slices.ContainsFunc(l.words, func(word string) bool {
		name, long := strings.CutPrefix(word, "--")
		name, _, _ = strings.Cut(name, "=")
		return long && slices.Contains(names, canonical(strings.ToLower(name), l.aliases))
	})
}

// steps is the number of steps of the line, 0 if it has none.
func (l *foreignLine) steps() int {
	for i, word := range slices.Concat(l.words, l.rest) {
		name, value, joined := strings.Cut(strings.TrimPrefix(word, "--"), "=")
		if word == "-n" || canonical(strings.ToLower(name), l.aliases) == "iterations" ||
			name == "max-num-iterations" || name == "total-steps" {
			if all := slices.Concat(l.words, l.rest); !joined && i+1 < len(all) {
				value = all[i+1]
			}
			n, _ := strconv.Atoi(value) // what is no number is refused later
			return n
		}
	}
	return 0
}

// splatFile reports whether a name is one of a model.
func splatFile(name string) bool {
	return slices.Contains([]string{".ply", ".splat", ".spz", ".sog", ".glb"}, strings.ToLower(filepath.Ext(name)))
}
