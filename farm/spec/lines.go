package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// path leads to a value of the document: keys, and numbers of list elements.
type path []any

func (p path) add(key string) path { return append(p[:len(p):len(p)], key) }
func (p path) index(i int) path    { return append(p[:len(p):len(p)], i) }

// String prints task 3 (counted from 1), set, iterations as "task 3: set.iterations".
func (p path) String() string {
	words := []string{}
	head := ""
	for i, part := range p {
		switch x := part.(type) {
		case string:
			words = append(words, x)
		case int:
			if i == 1 && p[0] == "task" {
				head = fmt.Sprintf("task %d", x+1)
				words = words[:0]
				continue
			}
			words = append(words, strconv.Itoa(x))
		}
	}
	text := strings.Join(words, ".")
	switch {
	case head == "":
		return text
	case text == "":
		return head
	}
	return head + ": " + text
}

// line returns where in the text the value of a path stands, or the nearest above it that is found; 0 where nothing is.
func (j *Job) line(at path) int {
	for ; len(at) > 0; at = at[:len(at)-1] {
		n := 0
		if j.toml {
			n = tomlLine(j.text, at)
		} else if offset, found := jsonOffset(j.text, at); found {
			n = 1 + bytes.Count(j.text[:offset], []byte("\n"))
		}
		if n > 0 {
			return n
		}
	}
	return 0
}

// tomlLine finds the line of the key or list element that a path leads to, or of the first key below it. The text is
// valid TOML.
func tomlLine(text []byte, at path) int {
	s := &tomlScan{text: text, line: 1, want: at, lists: map[string]int{}}
	var table path
	for s.found == 0 && s.blank("\n") {
		if s.text[0] != '[' {
			s.pair(table)
			continue
		}
		list := bytes.HasPrefix(s.text, []byte("[["))
		s.skip(1)
		if list {
			s.skip(1)
		}
		table = s.key(nil, list)
		s.until("\n")
	}
	return s.found
}

// tomlScan reads a TOML text key by key.
type tomlScan struct {
	text  []byte // what is left
	line  int
	want  path
	found int
	lists map[string]int // of tables: the number of the last one, by path
}

// skip goes on behind n bytes.
func (s *tomlScan) skip(n int) {
	n = min(n, len(s.text))
	s.line += bytes.Count(s.text[:n], []byte("\n"))
	s.text = s.text[n:]
}

// until goes to one of the characters in set, or to the end.
func (s *tomlScan) until(set string) {
	n := bytes.IndexAny(s.text, set)
	if n < 0 {
		n = len(s.text)
	}
	s.skip(n)
}

// blank goes to what is no space, comment or character of more, and says whether anything is.
func (s *tomlScan) blank(more string) bool {
	for len(s.text) > 0 {
		switch {
		case s.text[0] == '#':
			s.until("\n")
		case strings.IndexByte(" \t\r"+more, s.text[0]) >= 0:
			s.skip(1)
		default:
			return true
		}
	}
	return false
}

// key reads a dotted key below a path, and what leads there. Of a list of tables it is that of another one.
func (s *tomlScan) key(at path, another bool) path {
	for s.blank("") {
		part := ""
		switch c := s.text[0]; c {
		case '"', '\'':
			n := stringLength(s.text)
			part = strings.Trim(string(s.text[:n]), string(c))
			s.skip(n)
		default:
			before := s.text
			s.until(" \t.=]\n")
			part = string(before[:len(before)-len(s.text)])
		}
		at = at.add(part)
		more := s.blank("") && s.text[0] == '.'
		if another && !more {
			s.lists[at.String()]++
		}
		if n := s.lists[at.String()]; n > 0 {
			at = at.index(n - 1)
		}
		s.check(at)
		if !more {
			break
		}
		s.skip(1)
	}
	return at
}

// check notes the line where a path is the wanted one.
func (s *tomlScan) check(at path) {
	if s.found == 0 && slices.Equal(at, s.want) {
		s.found = s.line
	}
}

// pair reads a key and its value.
func (s *tomlScan) pair(table path) {
	at := s.key(table, false)
	if s.until("="); s.blank("=") {
		s.value(at)
	}
}

// value reads the value of a path.
func (s *tomlScan) value(at path) {
	switch s.text[0] {
	case '"', '\'':
		s.skip(stringLength(s.text))
	case '{':
		for s.skip(1); s.blank("\n,") && s.text[0] != '}'; {
			s.pair(at)
		}
		s.skip(1)
	case '[':
		s.skip(1)
		for n := 0; s.blank("\n,") && s.text[0] != ']'; n++ {
			s.check(at.index(n))
			s.value(at.index(n))
		}
		s.skip(1)
	default:
		s.skip(1)
		s.until(",]}#\n")
	}
}

// jsonOffset finds where the value of a path begins.
func jsonOffset(text []byte, at path) (int, bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	for _, part := range at {
		if _, err := d.Token(); err != nil {
			return 0, false
		}
		found := false
		for i := 0; d.More() && !found; i++ {
			if key, isKey := part.(string); isKey {
				token, err := d.Token()
				if err != nil {
					return 0, false
				}
				found = token == key
			} else {
				found = part == i
			}
			var skipped json.RawMessage
			if !found && d.Decode(&skipped) != nil {
				return 0, false
			}
		}
		if !found {
			return 0, false
		}
	}
	// An element of a list begins behind a comma and space; a value stands in the line of its key.
	offset := int(d.InputOffset())
	if _, isIndex := at[len(at)-1].(int); isIndex {
		offset += len(text[offset:]) - len(bytes.TrimLeft(text[offset:], ", \t\r\n"))
	}
	return offset, true
}
