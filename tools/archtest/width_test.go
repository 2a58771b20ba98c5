package archtest

import (
	"go/scanner"
	"go/token"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

const (
	maxColumns = 120
	tabColumns = 4
	tail       = 4 // what may follow a literal that cannot be broken
)

// columns is the width of a line.
func columns(line string) int {
	n := 0
	for _, r := range line {
		if r == '\t' {
			n += tabColumns
		} else {
			n++
		}
	}
	return n
}

// TestWidth refuses lines of code, scripts and documents that are too wide and could be folded.
func TestWidth(t *testing.T) {
	r := load(t)
	for _, name := range r.names() {
		var unbreakable map[int]bool
		switch ext := filepath.Ext(name); {
		case strings.HasSuffix(name, "_gen.go"):
			continue
		case ext == ".go":
			unbreakable = literalLines(r.texts[name])
		case ext == ".md":
			unbreakable = markdownLines(r.texts[name])
		case ext != ".comp" && ext != ".glsl" && ext != ".sh" && !isWeb(ext) && path.Base(name) != "Makefile":
			continue
		}
		for i, line := range strings.Split(r.texts[name], "\n") {
			if columns(line) > maxColumns && !unbreakable[i+1] {
				t.Errorf("%s:%d: %d columns, the limit is %d", name, i+1, columns(line), maxColumns)
			}
		}
	}
}

// isWeb reports whether a file with such an ending is part of a page. Viewers of others are packed, and none.
func isWeb(ext string) bool { return ext == ".js" || ext == ".css" || ext == ".html" }

// markdownLines are the lines of a document that cannot be folded: of tables, of code, and those with addresses.
func markdownLines(text string) map[int]bool {
	found, fenced := map[int]bool{}, false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "```") {
			fenced = !fenced
		}
		found[i+1] = fenced || strings.HasPrefix(line, "    ") || strings.HasPrefix(trimmed, "|") ||
			strings.Contains(line, "://")
	}
	return found
}

// literalLines are the lines of a file on which a string literal reaches the limit, or that are inside a raw one.
func literalLines(text string) map[int]bool {
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	lines := strings.Split(text, "\n")
	found := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return found
		}
		if tok != token.STRING {
			continue
		}
		at := file.Position(pos)
		parts := strings.Count(lit, "\n")
		for k := range parts {
			found[at.Line+k], found[at.Line+k+1] = true, true
		}
		if end := at.Column - 1 + len(lit); parts == 0 && columns(lines[at.Line-1][:end]) > maxColumns-tail {
			found[at.Line] = true
		}
	}
}
