package spec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
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

var headerForm = regexp.MustCompile(`^\s*(\[\[?)\s*([^\[\]#]+?)\s*\]`)

// tomlLine finds the line of a path by the headers and keys that lines begin with, which is how documents are written:
// those in one line of braces have no line of their own.
func tomlLine(text []byte, at path) int {
	keys, nth := []string{}, -1
	for i, part := range at {
		switch x := part.(type) {
		case string:
			keys = append(keys, x)
		case int:
			if i == 1 {
				nth = x
			}
		}
	}
	want := strings.Join(keys, ".")
	header, seen := "", -1
	for n, line := range strings.Split(string(text), "\n") {
		if m := headerForm.FindStringSubmatch(line); m != nil {
			header = unquoted(m[2])
			if m[1] == "[[" && header == keys[0] {
				seen++
			}
			if header == want && (nth < 0 || seen == nth) {
				return n + 1
			}
			continue
		}
		key, _, isKey := strings.Cut(line, "=")
		if !isKey {
			continue
		}
		full := unquoted(key)
		if header != "" {
			full = header + "." + full
		}
		inTask := header == keys[0] || strings.HasPrefix(header, keys[0]+".")
		if full == want && (nth < 0 || inTask && seen == nth) {
			return n + 1
		}
	}
	return 0
}

// unquoted strips spaces and quotes from the parts of a dotted key.
func unquoted(key string) string {
	parts := strings.Split(key, ".")
	for i := range parts {
		parts[i] = strings.Trim(strings.TrimSpace(parts[i]), `"'`)
	}
	return strings.Join(parts, ".")
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
