package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"vksplat/internal/fault"
	"vksplat/internal/geom"
	"vksplat/internal/wording"
)

// Object are the members of a JSON object; where begins the text of errors about them.
type Object struct {
	Members map[string]json.RawMessage
	Where   string
}

func (f Object) Errorf(format string, args ...any) error {
	return errors.New(f.Where + fmt.Sprintf(format, args...))
}

// Has says whether a member is there and not null.
func (f Object) Has(name string) bool {
	raw, ok := f.Members[name]
	return ok && string(raw) != "null"
}

// Into decodes a member; want says what it should be. dst is left alone when it is absent.
func (f Object) Into(name string, dst any, want string) error {
	if !f.Has(name) {
		return nil
	}
	if err := json.Unmarshal(f.Members[name], dst); err != nil {
		return f.Errorf("field %s is %s, %s is expected", name, Shown(f.Members[name]), want)
	}
	return nil
}

// Number gives a member that is a number, 0 when it is absent.
func (f Object) Number(name string) (v float64, err error) {
	err = f.Into(name, &v, "a number")
	return v, err
}

// Side gives a width or height in pixels. Some programs write whole numbers as 1080.0.
func (f Object) Side(name string) (int, error) {
	v, err := f.Number(name)
	if err != nil || !f.Has(name) {
		return 0, err
	}
	if v != math.Trunc(v) || v < 1 || v > geom.MaxSide {
		return 0, f.Errorf("field %s is %g, a whole number of pixels up to %d is expected", name, v, geom.MaxSide)
	}
	return int(v), nil
}

// Numbers decodes a list of exactly len(dst) numbers.
func (f Object) Numbers(name string, dst []float64) error {
	var list []*float64
	want := fmt.Sprintf("a list of %d numbers", len(dst))
	if err := f.Into(name, &list, want); err != nil {
		return err
	}
	if len(list) != len(dst) {
		return f.Errorf("field %s has %d numbers, %d are expected", name, len(list), len(dst))
	}
	return f.fill(dst, list, name)
}

// fill copies decoded numbers. What programs write that have no number is null, which is not 0.
func (f Object) fill(dst []float64, list []*float64, name string) error {
	for i, v := range list {
		if v == nil {
			return f.Errorf("field %s is null at %d, a number is expected", name, i)
		}
		dst[i] = *v
	}
	return nil
}

// Matrix gives the upper 3x4 part of a 3x4 or 4x4 matrix, row-major.
func (f Object) Matrix(name string) (m [12]float64, err error) {
	var rows [][]*float64
	if err := f.Into(name, &rows, "a matrix of numbers"); err != nil {
		return m, err
	}
	if len(rows) != 3 && len(rows) != 4 {
		return m, f.Errorf("field %s has %d rows, 3 or 4 are expected", name, len(rows))
	}
	for r, row := range rows {
		if len(row) != 4 {
			return m, f.Errorf("row %d of field %s has %d numbers, 4 are expected", r, name, len(row))
		}
		var last [4]float64
		to := last[:]
		if r < 3 {
			to = m[4*r : 4*r+4]
		}
		if err := (Object{Where: fmt.Sprintf("%srow %d of ", f.Where, r)}).fill(to, row, name); err != nil {
			return m, err
		}
		if r == 3 && last != [4]float64{3: 1} {
			return m, f.Errorf("the last row of field %s is %v, 0 0 0 1 is expected", name, last)
		}
	}
	return m, nil
}

// Shown quotes the beginning of a JSON value.
func Shown(raw []byte) string {
	text := strings.Join(strings.Fields(string(raw[:min(len(raw), 60)])), " ")
	if len(raw) > 60 {
		text += "..."
	}
	return wording.Printable(text)
}

// DecodeObject splits a JSON text into the members of its object. The file's size
// bounds what is allocated; nesting is bounded by package json.
func DecodeObject(data []byte) (f Object, err error) {
	if err = decodeJSON(data, &f.Members, "object"); err == nil && f.Members == nil {
		err = errors.New("the file is not a JSON object")
	}
	return f, err
}

// DecodeList splits a JSON text into the elements of its array. Errors name the element: many such files are one line.
func DecodeList(data []byte) (list []json.RawMessage, err error) {
	if err = decodeJSON(data, &list, "list"); err == nil {
		return list, nil
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if first, wrong := d.Token(); wrong != nil || first != json.Delim('[') {
		return nil, err
	}
	n := 0
	for d.More() {
		var skipped json.RawMessage
		if d.Decode(&skipped) != nil {
			break
		}
		n++
	}
	return nil, fmt.Errorf("entry %d, %w", n, err)
}

// decodeJSON decodes a whole file that should hold an object or a list, as want says.
func decodeJSON(data []byte, dst any, want string) error {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	err := json.Unmarshal(data, dst)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		at := min(max(int(syntax.Offset)-1, 0), len(data))
		return fmt.Errorf("line %d: not JSON: %s", 1+bytes.Count(data[:at], []byte("\n")),
			jsonCause(syntax, data[at:]))
	case err != nil:
		return fmt.Errorf("the file holds no JSON %s", want)
	}
	return nil
}

// notFinite matches texts, and outside of them what Python and C write for numbers that are not finite, and numbers
// with exponents that may be beyond float64.
var notFinite = regexp.MustCompile(`(?i)"(?:[^"\\]|\\.)*"|[-+]?\b(?:nan\b(?:\(\w*\))?|inf(?:inity)?\b)|` +
	`-?\b\d+(?:\.\d+)?e\+?\d{3,}\b`)

// Finite gives JSON in which numbers that are not finite, which JSON lacks and programs write, are 1e300, and so are
// those beyond float64, as 1e999: a number beyond all that a capture may have.
func Finite(data []byte) []byte {
	return notFinite.ReplaceAllFunc(data, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		if x, err := strconv.ParseFloat(string(found), 64); err == nil && geom.Finite(x) {
			return found
		}
		return []byte("1e300")
	})
}

// MaxFile bounds the bytes of a file that ReadFile reads: a plan of a million photos has fewer.
const MaxFile = 1 << 30

// ReadFile reads the JSON of a plain file into v.
func ReadFile(path string, v any) error {
	data, err := fault.ReadFile(path, MaxFile)
	if err != nil {
		return err
	}
	return JSONError(json.Unmarshal(data, v))
}

// JSONError words an error of package encoding/json for people: with the key in the file and without the types of this
// program. Other errors it leaves alone.
func JSONError(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err
	}
	want := "an object"
	switch kind.Type.Kind() {
	case reflect.Bool:
		want = "true or false"
	case reflect.String:
		want = "a text"
	case reflect.Slice, reflect.Array:
		want = "a list"
	case reflect.Float32, reflect.Float64:
		want = "a smaller number" // others are numbers, too
		if !strings.HasPrefix(kind.Value, "number ") {
			want = "a number"
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64:
		want = "a whole number"
		if kind.Type.Kind() >= reflect.Uint {
			want += " from 0"
		}
		text, _ := strings.CutPrefix(kind.Value, "number ")
		switch x, _ := strconv.ParseFloat(text, 64); {
		case x >= 1<<63:
			want = "a smaller whole number"
		case x > 0 && x == math.Trunc(x):
			want += " in digits alone"
		}
	}
	where := ""
	if kind.Field != "" {
		where = fmt.Sprintf("field %s: ", wording.Printable(kind.Field))
	}
	return fmt.Errorf("%s%s is there, %s is expected", where, wording.Printable(kind.Value), want)
}

// jsonCause words a syntax error; Python writes NaN and Infinity, which JSON does not know.
func jsonCause(err *json.SyntaxError, rest []byte) string {
	for _, name := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(rest, []byte(name)) {
			return name + " is not a number"
		}
	}
	if len(bytes.TrimSpace(rest)) == 0 {
		return "the file ends too early"
	}
	return err.Error()
}

// List gives the elements of an array.
func (f Object) List(name string) (list []json.RawMessage, err error) {
	err = f.Into(name, &list, "a list")
	return list, err
}

// Element decodes the i-th element of an array of objects, called what.
func Element(raw json.RawMessage, what string, i int) (Object, error) {
	f := Object{Where: what + " " + strconv.Itoa(i) + ": "}
	if err := json.Unmarshal(raw, &f.Members); err != nil || f.Members == nil {
		return f, f.Errorf("expected an object, got %s", Shown(raw))
	}
	return f, nil
}
