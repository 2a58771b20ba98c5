package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// A document is a tree of map[string]any, []any, string, bool, int64 and finite float64.

const tomlHint = "docs/farm-jobs.md shows what a job looks like"

// readText reads the document.
func (j *Job) readText() error {
	if line := badText(j.text); line > 0 {
		return j.wrongLine(line, tomlHint, errors.New("not UTF-8 text"))
	}
	s := scan(j.text) // before a decoder follows whatever nests
	if s.err != nil {
		return j.wrongLine(j.lineOf(s.end()), tomlHint, s.err)
	}
	j.places = s.places
	decode := j.decodeTOML
	if s.json {
		decode = j.decodeJSON
	}
	if err := decode(); err != nil {
		return err
	}
	_, err := j.plain(j.tree, nil)
	return err
}

// wrongLine is an error in a line; 0 where that is not known.
func (j *Job) wrongLine(line int, hint string, err error) error {
	where := j.file
	if line > 0 {
		where = fmt.Sprintf("%s:%d", where, line)
	}
	return &fault.Error{Op: "check " + where, Err: err, Hint: hint, Kind: ErrSpec}
}

// lineOf is the line of an offset.
func (j *Job) lineOf(offset int) int {
	return 1 + bytes.Count(j.text[:min(offset, len(j.text))], []byte("\n"))
}

func (j *Job) decodeTOML() error {
	_, err := toml.Decode(string(j.text), &j.tree)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		return j.wrongLine(parse.Position.Line, `TOML has lines like: name = "garden"`,
			errors.New(wording.Clause(parse.Message)))
	case err != nil:
		return j.wrong(nil, tomlHint, "%w", err)
	}
	return nil
}

func (j *Job) decodeJSON() error {
	err := json.Unmarshal(append(j.text[:len(j.text):len(j.text)], '\n'), new(json.RawMessage)) // looks at all of it
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		if int(syntax.Offset) > len(j.text) {
			err = errors.New("it ends too early")
		}
		return j.wrongLine(j.lineOf(int(syntax.Offset)-1), tomlHint, err) // it is behind the wrong byte
	}
	d := json.NewDecoder(bytes.NewReader(j.text))
	d.UseNumber()
	return d.Decode(&j.tree)
}

// badText returns the first line that is no UTF-8, 0 where all are.
func badText(data []byte) int {
	if utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		return 0
	}
	for n := 1; ; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		if !utf8.Valid(line) || bytes.IndexByte(line, 0) >= 0 {
			return n
		}
		data = rest
	}
}

// plain checks what a decoder made and brings it to the types of a tree.
func (j *Job) plain(v any, at path) (_ any, err error) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			if x[key], err = j.plain(value, at.add(key)); err != nil {
				return nil, err
			}
		}
		return x, nil
	case []map[string]any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = x[i]
		}
		return j.plain(list, at)
	case []any:
		for i := range x {
			if x[i], err = j.plain(x[i], at.index(i)); err != nil {
				return nil, err
			}
		}
		return x, nil
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i, nil
		}
		f, err := x.Float64()
		if err != nil {
			return nil, j.wrong(at, "give a finite number", "%.40s is out of range", x)
		}
		return j.plain(f, at)
	case float64:
		switch {
		case math.IsNaN(x) || math.IsInf(x, 0):
			return nil, j.wrong(at, "give a finite number", "%v is out of range", x)
		case x == math.Trunc(x) && math.Abs(x) <= 1<<53: // so that 2, 2.0 and 2e0 are the same document
			return int64(x), nil
		}
		return x, nil
	case int64, string, bool:
		return x, nil
	case nil:
		return nil, j.wrong(at, "leave it out", "jobs have no null values")
	}
	return nil, j.wrong(at, "put it in quotes", "jobs have no dates or times")
}
