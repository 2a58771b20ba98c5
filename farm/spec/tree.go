package spec

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/BurntSushi/toml"

	"vksplat/internal/fault"
	"vksplat/internal/wording"
)

// A document is a tree of map[string]any, []any, string, bool, int64 and finite float64.

const tomlHint = "docs/farm-jobs.md shows what a job looks like"

func isJSON(data []byte) bool {
	text := bytes.TrimLeft(data, " \t\r\n")
	return len(text) > 0 && text[0] == '{'
}

// readText reads the document.
func (j *Job) readText() error {
	if line := badText(j.text); line > 0 {
		return j.wrongLine(line, tomlHint, "not UTF-8 text")
	}
	if isJSON(j.text) {
		return j.readJSON()
	}
	j.toml = true
	return j.readTOML()
}

// wrongLine is an error in a line.
func (j *Job) wrongLine(line int, hint, format string, args ...any) error {
	return &documentError{File: j.file, Line: line, Err: fault.WithHint(fmt.Errorf(format, args...), hint)}
}

func (j *Job) readTOML() error {
	if line := tooDeep(j.text); line > 0 {
		return j.wrongLine(line, tomlHint, "more than %d nested tables or lists", maxDepth)
	}
	_, err := toml.Decode(string(j.text), &j.tree)
	var parse toml.ParseError
	switch {
	case errors.As(err, &parse):
		return j.wrongLine(parse.Position.Line, `TOML has lines like: name = "garden"`, "%s",
			wording.Clause(parse.Message))
	case err != nil:
		return j.wrong(nil, tomlHint, "%w", err)
	}
	_, err = j.plain(j.tree, nil)
	return err
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

// tooDeep returns the first line of a TOML text where brackets or the parts of a dotted key are more than maxDepth
// deep, 0 if there is none: the decoder takes stack for the ones, and time that grows with their square for the others.
func tooDeep(data []byte) int {
	depth, dots, line := 0, 0, 1
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '\n':
			line++
			dots = 0
		case '#':
			n := bytes.IndexByte(data[i:], '\n')
			if n < 0 {
				return 0
			}
			i += n - 1
		case '"', '\'':
			n := stringLength(data[i:])
			line += bytes.Count(data[i:i+n], []byte("\n"))
			i += n - 1
		case '[', '{':
			depth++
			dots = 0
		case ']', '}':
			depth = max(depth-1, 0)
		case '.':
			dots++
		case '=', ',':
			dots = 0
		}
		if depth > maxDepth || dots > maxDepth {
			return line
		}
	}
	return 0
}

// stringLength is how many bytes the TOML string at the start of data has, with its quotes.
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

// plain checks what the decoder of TOML made and brings it to the types of a tree.
func (j *Job) plain(v any, at path) (any, error) {
	switch x := v.(type) {
	case map[string]any:
		for key, value := range x {
			p, err := j.plain(value, at.add(key))
			if err != nil {
				return nil, err
			}
			x[key] = p
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
			p, err := j.plain(x[i], at.index(i))
			if err != nil {
				return nil, err
			}
			x[i] = p
		}
		return x, nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, j.wrong(at, "give a finite number", "%v is out of range", x)
		}
		return exact(x), nil
	case int64, string, bool:
		return x, nil
	}
	return nil, j.wrong(at, "put it in quotes", "jobs have no dates or times")
}

func (j *Job) readJSON() error {
	r := &jsonReader{json.NewDecoder(bytes.NewReader(j.text)), map[string]int{}}
	r.UseNumber()
	v, err := r.value(nil)
	if err == nil {
		if _, more := r.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("extra data after the document")
		}
	}
	if err != nil {
		line := 1 + bytes.Count(j.text[:min(int(r.InputOffset()), len(j.text))], []byte("\n"))
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("it ends too early")
		}
		return j.wrongLine(line, tomlHint, "%s", strings.TrimPrefix(err.Error(), "json: "))
	}
	j.places, j.tree = r.places, v.(map[string]any) // isJSON saw its brace
	return nil
}

// jsonReader reads a value token by token, so that depth and keys that are there twice are seen.
type jsonReader struct {
	*json.Decoder
	places map[string]int // of the values of paths: what ends before them
}

func (r *jsonReader) value(at path) (any, error) {
	r.places[at.String()] = int(r.InputOffset())
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	if len(at) > maxDepth {
		return nil, fmt.Errorf("more than %d nested objects or lists", maxDepth)
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '[' {
			return r.list(at)
		}
		return r.table(at)
	case json.Number:
		return jsonNumber(t)
	case nil:
		return nil, errors.New("jobs have no null values")
	}
	return token, nil
}

func (r *jsonReader) list(at path) (any, error) {
	list := []any{}
	for r.More() {
		v, err := r.value(at.index(len(list)))
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := r.Token()
	return list, err
}

func (r *jsonReader) table(at path) (any, error) {
	table := map[string]any{}
	for r.More() {
		token, err := r.Token()
		if err != nil {
			return nil, err
		}
		key, isText := token.(string)
		if !isText {
			return nil, errors.New("a key is needed")
		}
		if _, twice := table[key]; twice {
			return nil, fmt.Errorf("key %q occurs twice", key)
		}
		if table[key], err = r.value(at.add(key)); err != nil {
			return nil, err
		}
	}
	_, err := r.Token()
	return table, err
}

// jsonNumber is an int64 where the number is one, else a float64.
func jsonNumber(n json.Number) (any, error) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, nil
	}
	x, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(x, 0) {
		return nil, fmt.Errorf("%.40s is out of range", n)
	}
	return exact(x), nil
}

// exact makes an integer of a number without a fraction, so that 2, 2.0 and 2e0 are the same document.
func exact(x float64) any {
	if x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
		return int64(x)
	}
	return x
}
