package main

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"vksplat/internal/run/evaluate"
	"vksplat/internal/run/output"
	"vksplat/internal/run/render"
)

// scripts are INRIA's programs beside train.py, and the commands that do what they do.
var scripts = map[string][]string{"render.py": {"render"}, "metrics.py": {"eval", "--protocol", "inria"}}

// lineOf is a command line that may be one of another trainer, nil of other commands.
func lineOf(args []string) *foreignLine {
	l := &foreignLine{rest: args}
	if len(args) > 0 && slices.Contains([]string{"train", "render", "eval"}, args[0]) {
		l.command, l.rest = args[0], args[1:]
	}
	l.skipPython()
	for i, word := range l.rest {
		if s := scripts[path.Base(filepath.ToSlash(word))]; s != nil {
			l.command, l.words, l.rest, l.foreign = s[0], slices.Clone(s[1:]), l.rest[i+1:], true
			break
		}
		if !programs.MatchString(word) {
			break
		}
	}
	switch l.command {
	case "":
		return nil
	case "train":
		l.table, l.letters, l.flags = trainTable(newTrainOptions()), foreignLetters, foreignFlags
	case "render":
		l.table = renderTable(render.NewOptions())
		l.letters, l.flags = scriptLetters("cameras"), scriptFlags("cameras")
	case "eval":
		l.table = evalTable(evaluate.NewOptions())
		l.letters, l.flags = scriptLetters("capture"), scriptFlags("capture")
	}
	l.aliases = aliasesOf(trainTable(newTrainOptions()))
	return l
}

// Programs that run a script, after flags of their own, and the scripts.
var (
	variables = regexp.MustCompile(`^[A-Z][A-Z0-9_]*=`)
	runners   = regexp.MustCompile(`^(.*/)?(python[0-9.]*|torchrun|accelerate)(\.exe)?$`)
	scripted  = regexp.MustCompile(`^(.*/)?(train|simple_trainer|render|metrics)\.py$`)
)

// skipPython leaves out what stands before the name of a script, where -m is a module and no folder. A module alone is
// refused.
func (l *foreignLine) skipPython() {
	at := slices.IndexFunc(l.rest, func(word string) bool { return !variables.MatchString(word) })
	if at < 0 || !runners.MatchString(l.rest[at]) || output.IsFolder(l.rest[at]) { // a scene of that name
		return
	}
	after := l.rest[at+1:]
	if script := slices.IndexFunc(after, scripted.MatchString); script >= 0 {
		l.rest = after[script:]
	} else if len(after) > 1 && after[0] == "-m" {
		l.rest, l.foreign = after[2:], true
		l.refused = append(l.refused, "-m "+after[1]+": that is a Python module and no folder: leave out the words up to it")
	}
}

// scriptLetters are flags of one letter of these programs. capture is the flag for where the photos are.
func scriptLetters(capture string) map[string]*foreignFlag {
	return map[string]*foreignFlag{"m": sceneFlag, "s": taken(capture), "w": turned("--background", "white")}
}

// scriptFlags are the others.
func scriptFlags(capture string) map[string]*foreignFlag {
	const known = "the run's record says it"
	return map[string]*foreignFlag{
		"model-path": sceneFlag, "model-paths": sceneFlag, "source-path": taken(capture),
		"white-background": turned("--background", "white"),
		"skip-train":       leaves("test", "--skip-test"), "skip-test": leaves("train", "--skip-train"),
		"quiet": idle("errors come in one line").alone(), "eval": idle(known).alone(),
		"train-test-exp": idle(known).alone(),
		"sh-degree":      idle(known), "data-device": idle(photoCache),
		"convert-shs-python":   idle("there is one way to draw").alone(),
		"compute-cov3d-python": idle("there is one way to draw").alone(),
		"debug":                idle("it changes no picture").alone(),
	}
}

// leaves draws the photos of a split alone: the flag is one of a pair, and both leave nothing.
func leaves(split, other string) *foreignFlag {
	return &foreignFlag{bare: true, mean: func(v string, l *foreignLine) meaning {
		at := slices.Index(l.words, "--split")
		switch {
		case v == no:
			return meaning{}
		case at >= 0 && !slices.Contains(l.words[at:], split):
			return refused("with " + other + " nothing is left to draw: leave one of them out")
		}
		return as("--split", split)
	}}
}

// nameModel puts the model where render and eval take it, and says where pictures go, as INRIA's render.py does not.
func (l *foreignLine) nameModel() {
	if l.scene == "" {
		return
	}
	l.places = append([]string{l.scene}, l.places...)
	if l.command == "render" && !l.gives("output", "video", "format") && !slices.ContainsFunc(l.words,
		func(word string) bool { return strings.HasPrefix(word, "-o") }) {
		l.words = append(l.words, "-o", filepath.Join(l.scene, "renders"))
	}
}
