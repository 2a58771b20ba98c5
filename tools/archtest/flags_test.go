package archtest

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// flagless are the layers whose texts name settings by fault.Setting: only the command has flags. Command lines to type
// go through fault.Command, and the arguments of processes that are started through cli.Flag. farm/export is none of
// them: it writes scripts.
var flagless = []string{"scene/...", "pipeline/...", "internal/...", "vk/...", "view/...", "farm/client", "farm/flow",
	"farm/local", "farm/page", "farm/pass", "farm/spec/...", "farm/store/...", "farm/task", "farm/wire", "farm/worker"}

// callers are the layers that say what processes of this program are called with, and oneArgument is a literal that is
// an argument of a process or the beginning of one, and no text.
var (
	callers     = []string{"farm/spec", "farm/task"}
	oneArgument = regexp.MustCompile(`^--[a-z-]+(=\S*)?$`)
)

// commandLine finds the beginning of a command line that is put together.
var commandLine = regexp.MustCompile(`\bvksplat (?:farm )?[a-z-]+ (?:%|$)`)

var flagText = regexp.MustCompile(`--[a-z%]|[ (]-[a-z]\b`)

// otherFlags lists the files that name flags of other programs, and whose.
var otherFlags = map[string]string{
	"scene/photo/formats.go": "heif-convert and ffmpeg",
	"vk/loader_unix.go":      "Docker",
}

// TestFlags finds flags in the strings of packages below the command.
func TestFlags(t *testing.T) {
	r := load(t)
	used := map[string]bool{}
	for _, f := range r.files {
		below := slices.ContainsFunc(flagless, func(layer string) bool { return within(f.dir, layer) })
		if f.isTest || !below {
			continue
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if isCommand(n) {
				return false
			}
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			switch {
			case err == nil && commandLine.MatchString(text):
				t.Errorf("%s: %s begins a command to type: use fault.Command", r.fset.Position(literal.Pos()),
					literal.Value)
			case err == nil && !flagText.MatchString(text):
			case slices.Contains(callers, f.dir) && oneArgument.MatchString(text):
			case otherFlags[f.path] != "":
				used[f.path] = true
			default:
				t.Errorf("%s: %s names a flag: use fault.Setting, because only the command has flags",
					r.fset.Position(literal.Pos()), literal.Value)
			}
			return true
		})
	}
	for name := range otherFlags {
		if !used[name] {
			t.Errorf("%s is listed as an exception and is none: delete it from the list", name)
		}
	}
}

// isCommand tells whether n makes the text of a command to type.
func isCommand(n ast.Node) bool {
	call, is := n.(*ast.CallExpr)
	if !is {
		return false
	}
	function, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	of, is := function.X.(*ast.Ident)
	return is && of.Name == "fault" && function.Sel.Name == "Command"
}
