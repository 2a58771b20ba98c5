package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// source is what the GLSL text says and SPIR-V does not carry: comments, and whether a size was written at all.
type source struct {
	header            []string             // the comment block that opens the .comp
	bindings          map[int]string       // comment beside the declaration of the binding, else above it
	structs           map[string]sourceDoc // by GLSL name of the struct or block
	maxBinding        int                  // highest binding number written in the text, -1 if none
	declaresLocalSize bool
}

// sourceDoc holds the comments around a struct or block.
type sourceDoc struct {
	lines   []string            // comment lines directly above
	members map[string]string   // trailing comment per member
	above   map[string][]string // comment lines directly above a member
}

var (
	includeLine = regexp.MustCompile(`^\s*#\s*include\s+"([^"]+)"`)
	localSize   = regexp.MustCompile(`\blocal_size_x\s*=`)
	bindingLine = regexp.MustCompile(`\bbinding\s*=\s*(\d+)`)
	structLine  = regexp.MustCompile(`\b(?:struct|buffer|uniform)\s+(\w+)\s*(?:\{|$)`)
	memberLine  = regexp.MustCompile(`(\w+)\s*(?:\[[^\]]*\]\s*)*;`)
)

// readSource reads a .comp and everything it includes.
func readSource(path, sharedDir string) (*source, error) {
	s := &source{bindings: map[int]string{}, structs: map[string]sourceDoc{}, maxBinding: -1}
	if err := s.file(path, sharedDir, map[string]bool{}); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *source) file(path, sharedDir string, seen map[string]bool) error {
	if seen[path] {
		return nil
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	top := len(seen) == 0
	seen[path] = true
	lines := spliceMembers(strings.Split(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n"), sharedDir)
	if top {
		s.header = headerComment(lines)
	}
	s.scan(lines)
	for _, line := range lines {
		found := includeLine.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		for _, dir := range []string{filepath.Dir(path), sharedDir} {
			next := filepath.Join(dir, found[1])
			if _, err := os.Stat(next); err == nil {
				if err := s.file(next, sharedDir, seen); err != nil {
					return err
				}
				break
			}
		}
	}
	return nil
}

// spliceMembers puts files that are included inside of a struct, which is indented, in place of their #include.
func spliceMembers(lines []string, sharedDir string) (all []string) {
	for _, line := range lines {
		if found := includeLine.FindStringSubmatch(line); found != nil && strings.HasPrefix(line, " ") {
			if raw, err := os.ReadFile(filepath.Join(sharedDir, found[1])); err == nil {
				_, members, _ := strings.Cut(string(raw), "\n\n") // without the header
				all = append(all, strings.Split(members, "\n")...)
				continue
			}
		}
		all = append(all, line)
	}
	return all
}

// headerComment returns the first run of // lines, which may follow the #version line.
func headerComment(lines []string) []string {
	var doc []string
	for _, line := range lines {
		text, isComment := strings.CutPrefix(strings.TrimSpace(line), "//")
		switch {
		case isComment:
			doc = append(doc, strings.TrimRight(strings.TrimPrefix(text, " "), " \t"))
		case len(doc) > 0:
			return doc
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			return nil
		}
	}
	return doc
}

// scan collects the comments of one file's declarations.
func (s *source) scan(lines []string) {
	var above []string
	for i, line := range lines {
		code, comment, _ := strings.Cut(line, "//")
		comment = strings.TrimSpace(comment)
		if strings.TrimSpace(code) == "" {
			if comment == "" {
				above = nil
			} else {
				above = append(above, comment)
			}
			continue
		}
		if localSize.MatchString(code) {
			s.declaresLocalSize = true
		}
		if found := bindingLine.FindStringSubmatch(code); found != nil {
			n, _ := strconv.Atoi(found[1])
			s.maxBinding = max(s.maxBinding, n)
			if s.bindings[n] == "" {
				s.bindings[n] = cmp.Or(comment, strings.Join(above, " "))
			}
		}
		if found := structLine.FindStringSubmatch(strings.TrimSpace(code)); found != nil {
			if _, seen := s.structs[found[1]]; !seen {
				members, over := memberComments(lines[i+1:])
				s.structs[found[1]] = sourceDoc{above, members, over}
			}
		}
		above = nil
	}
}

// memberComments reads one member per line up to the closing brace: the comment beside it and the lines above it.
func memberComments(lines []string) (beside map[string]string, above map[string][]string) {
	beside, above = map[string]string{}, map[string][]string{}
	var pending []string
	for _, line := range lines {
		code, comment, _ := strings.Cut(line, "//")
		comment = strings.TrimSpace(comment)
		if strings.Contains(code, "}") {
			break
		}
		if found := memberLine.FindStringSubmatch(code); found != nil {
			beside[found[1]], above[found[1]] = comment, pending
			pending = nil
		} else if comment != "" {
			pending = append(pending, comment)
		}
	}
	return beside, above
}
