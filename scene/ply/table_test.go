package ply

import (
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"

	"vksplat/internal/atomicfile"
)

func TestPLYTables(t *testing.T) {
	header := "ply\nformat binary_little_endian 1.0\ncomment SplatRenderMode: mip\nelement a 3\nproperty uchar " +
		"b\nproperty double c\nelement d 2\nproperty short e\nend_header\n"
	tables, meta, err := ReadTables(strings.NewReader(header), int64(len(header))+3*9+2*2)
	if err != nil || len(tables) != 2 || !meta.Antialiased {
		t.Fatalf("%+v, %+v, %v", tables, meta, err)
	}
	a, d := &tables[0], &tables[1]
	if a.Name != "a" || a.Rows != 3 || a.RowBytes != 9 || a.Offset != int64(len(header)) || d.Offset != a.Offset+27 ||
		d.RowBytes != 2 {
		t.Errorf("%+v", tables)
	}
	if a.Column("uchar", "b") != 0 || a.Column("double", "c") != 1 || a.Column("float", "c") != -1 ||
		a.Column("double", "e") != -1 {
		t.Error("columns are elsewhere")
	}
	if got := a.Columns(); !reflect.DeepEqual(got, []string{"b", "c"}) {
		t.Errorf("columns %q", got)
	}
	for what, bad := range map[string]string{
		"a byte short":  header,
		"ascii":         strings.Replace(header, "binary_little_endian", "ascii", 1),
		"a list":        strings.Replace(header, "short e", "list uchar int e", 1),
		"no properties": strings.Replace(header, "property short e\n", "", 1),
		"many rows":     strings.Replace(header, "element d 2", "element d 9223372036854775807", 1),
		"no end":        strings.Replace(header, "end_header\n", "", 1),
	} {
		if _, _, err := ReadTables(strings.NewReader(bad), int64(len(bad))+3*9+2*2-1); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestWriteFileAt(t *testing.T) {
	dir := t.TempDir()
	path := dir + "/a"
	for _, text := range []string{"abc", "de"} {
		err := atomicfile.WriteAt(path, func(w io.WriterAt) error {
			for i := len(text) - 1; i >= 0; i-- {
				if _, err := w.WriteAt([]byte{text[i]}, int64(i)); err != nil {
					return err
				}
			}
			return nil
		})
		if got, _ := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v", got, err)
		}
	}
	failure := errors.New("failure")
	if err := atomicfile.WriteAt(path, func(io.WriterAt) error { return failure }); !errors.Is(err, failure) ||
		!strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
