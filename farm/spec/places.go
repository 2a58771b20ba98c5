package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// path leads to a value of the document: keys, and numbers of list elements.
type path []any

func (p path) add(key string) path { return append(p[:len(p):len(p)], key) }
func (p path) index(i int) path    { return append(p[:len(p):len(p)], i) }

// String prints task 3 (counted from 1), set, iterations as "task 3: set.iterations".
func (p path) String() string {
	head := ""
	if len(p) > 1 && p[0] == "task" {
		if n, isInt := p[1].(int); isInt {
			if head, p = fmt.Sprintf("task %d", n+1), p[2:]; len(p) > 0 {
				head += ": "
			}
		}
	}
	words := make([]string, len(p))
	for i, part := range p {
		words[i] = fmt.Sprint(part)
	}
	return head + strings.Join(words, ".")
}

// line returns where in the text the value of a path stands, or the nearest above it that is found; 0 where nothing is.
func (j *Job) line(at path) int {
	for ; len(at) > 0; at = at[:len(at)-1] {
		if offset, found := j.places[at.String()]; found {
			return j.lineOf(offset)
		}
	}
	return 0
}

// scanner finds the place of each table, key and list element of a text in TOML or JSON. The decoders do not: JSON's
// knows no places, and TOML's, in a list of tables, only those in the last table. It also refuses what the decoders do
// not: deep nesting, which would exhaust their stack, and JSON keys that occur twice. Invalid text ends it in linear
// time; what it finds there means nothing.
type scanner struct {
	text   []byte // what is left
	whole  int    // length of all
	json   bool
	places map[string]int // in the text, by path
	lists  map[string]int // of tables: the number of the last one, by path
	err    error          // why it stopped
}

func scan(text []byte) *scanner {
	s := &scanner{text: text, whole: len(text), places: map[string]int{}, lists: map[string]int{}}
	if s.json = bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")); s.json {
		s.blank("\n")
		s.value(nil)
		return s
	}
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
	return s
}

// end is where the scan ended.
func (s *scanner) end() int { return s.whole - len(s.text) }

// skip goes on behind n bytes.
func (s *scanner) skip(n int) {
	if s.err == nil {
		s.text = s.text[min(n, len(s.text)):]
	}
}

// until goes to one of the characters in set, or to the end.
func (s *scanner) until(set string) {
	n := bytes.IndexAny(s.text, set)
	if n < 0 {
		n = len(s.text)
	}
	s.skip(n)
}

// blank goes to what is no space, comment or character of more, and says whether anything is.
func (s *scanner) blank(more string) bool {
	for len(s.text) > 0 && s.err == nil {
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
func (s *scanner) key(at path, another bool) path {
	for s.blank("") {
		begin, part := s.text, ""
		if c := s.text[0]; c == '"' || c == '\'' {
			s.skip(stringLength(s.text))
			quoted := begin[:len(begin)-len(s.text)]
			if json.Unmarshal(quoted, &part) != nil {
				part = strings.Trim(string(quoted), string(c))
			}
		} else {
			s.until(" \t.=]\n")
			part = string(begin[:len(begin)-len(s.text)])
		}
		at = at.add(part)
		more := s.blank("") && s.text[0] == '.'
		if another && !more {
			s.lists[at.String()]++
		}
		if n := s.lists[at.String()]; n > 0 {
			at = at.index(n - 1)
		}
		if _, twice := s.places[at.String()]; twice && s.json {
			s.err = fmt.Errorf("key %q occurs twice", part)
		}
		s.note(at, len(begin))
		if !more {
			break
		}
		s.skip(1)
	}
	return at
}

// note records the first place of a path; left is the length of the text from there on.
func (s *scanner) note(at path, left int) {
	if len(at) > maxDepth && s.err == nil {
		s.err = fmt.Errorf("more than %d nested tables or lists", maxDepth)
	}
	name := at.String()
	if _, known := s.places[name]; !known {
		s.places[name] = s.whole - left
	}
}

// pair reads a key and its value.
func (s *scanner) pair(table path) {
	at := s.key(table, false)
	if s.until("=:"); s.blank("=:\n") {
		s.value(at)
	}
}

// value reads the value of a path.
func (s *scanner) value(at path) {
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
			s.note(at.index(n), len(s.text))
			s.value(at.index(n))
		}
		s.skip(1)
	default:
		s.skip(1)
		s.until(",]}#\n")
	}
}

// stringLength is how many bytes the string at the start of data has, with its quotes.
func stringLength(data []byte) int {
	quote := data[:1]
	if three := bytes.Repeat(quote, 3); bytes.HasPrefix(data, three) {
		quote = three
	}
	for i := len(quote); i < len(data); i++ {
		switch {
		case data[i] == '\\' && quote[0] == '"':
			i++
		case bytes.HasPrefix(data[i:], quote):
			return i + len(quote)
		case data[i] == '\n' && len(quote) == 1:
			return i
		}
	}
	return len(data)
}
