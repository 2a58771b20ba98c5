package spec

import (
	"bytes"
	"fmt"
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
	if j.toml {
		j.places = tomlPlaces(j.text)
	}
	for ; len(at) > 0; at = at[:len(at)-1] {
		if offset, found := j.places[at.String()]; found {
			offset += len(j.text[offset:]) - len(bytes.TrimLeft(j.text[offset:], ", \t\r\n"))
			return 1 + bytes.Count(j.text[:offset], []byte("\n"))
		}
	}
	return 0
}

// tomlPlaces maps the path of each table, key and list element to its first place in a valid TOML text. The library
// knows places of keys, but of those in a list of tables only the last.
func tomlPlaces(text []byte) map[string]int {
	s := &tomlScan{text: text, whole: len(text), places: map[string]int{}, lists: map[string]int{}}
	var table path
	for s.blank("\n") {
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
	return s.places
}

// tomlScan reads a TOML text key by key.
type tomlScan struct {
	text   []byte // what is left
	whole  int    // length of all
	places map[string]int
	lists  map[string]int // of tables: the number of the last one, by path
}

// skip goes on behind n bytes.
func (s *tomlScan) skip(n int) {
	s.text = s.text[min(n, len(s.text)):]
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
		s.note(at)
		if !more {
			break
		}
		s.skip(1)
	}
	return at
}

// note keeps the first place of a path.
func (s *tomlScan) note(at path) {
	name := at.String()
	if _, known := s.places[name]; !known {
		s.places[name] = s.whole - len(s.text)
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
			s.note(at.index(n))
			s.value(at.index(n))
		}
		s.skip(1)
	default:
		s.skip(1)
		s.until(",]}#\n")
	}
}
