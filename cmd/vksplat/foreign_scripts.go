package main

import (
	"path"
	"path/filepath"
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
		l.flags["iteration"] = &foreignFlag{mean: func(v string, l *foreignLine) meaning {
			if l.step = v; v == "-1" { // the last
				l.step = ""
			}
			return meaning{}
		}}
	case "eval":
		l.table = evalTable(evaluate.NewOptions())
		l.letters, l.flags = scriptLetters("capture"), scriptFlags("capture")
	}
	l.aliases = aliasesOf(trainTable(newTrainOptions()))
	return l
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
		"skip-train":       turned("--split", "test"), "skip-test": turned("--split", "train"),
		"quiet": idleSwitch("errors come in one line"), "eval": idleSwitch(known), "train-test-exp": idleSwitch(known),
		"sh-degree": idle(known), "data-device": idle(photoCache),
		"convert-shs-python":   idleSwitch("there is one way to draw"),
		"compute-cov3d-python": idleSwitch("there is one way to draw"), "debug": idleSwitch("it changes no picture"),
	}
}

// nameModel puts the model where render and eval take it, and says where pictures go, as INRIA's render.py does not.
func (l *foreignLine) nameModel() {
	if l.scene == "" {
		return
	}
	model := l.scene
	if l.step != "" {
		model = filepath.Join(model, output.ModelFolder+l.step, output.ModelName)
	}
	l.places = append([]string{model}, l.places...)
	if l.command == "render" && !l.gives("output", "video", "format") && !slices.ContainsFunc(l.words,
		func(word string) bool { return strings.HasPrefix(word, "-o") }) {
		l.words = append(l.words, "-o", filepath.Join(l.scene, "renders"))
	}
}
