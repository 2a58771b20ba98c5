package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"vksplat/internal/fault"
	"vksplat/internal/filetest"
	must "vksplat/internal/musttest"
)

// sampleTensors are tensors of several types, one of them empty.
func sampleTensors() []TensorData {
	tensor := func(name, dtype string, data []byte, shape ...int) TensorData {
		return TensorData{TensorInfo{name, dtype, shape}, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		}}
	}
	floats, err := binary.Append(nil, binary.LittleEndian, []float32{1, -2.5, 3, 4, 5, 6})
	if err != nil {
		panic(err)
	}
	return []TensorData{
		tensor("means", "F32", floats, 2, 3),
		tensor("none", "F32", nil, 0, 3),
		tensor("flags", "U8", []byte{7, 8, 9}, 3),
		tensor("one \"quoted\"", "U32", []byte{1, 2, 3, 4}),
	}
}

func sampleFile(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.safetensors")
	must.Do(t, Write(path, map[string]string{"b": "2", "a": "{\"sha256\":\"0\"}"}, sampleTensors()))
	return path
}

func TestSafetensorsRoundTrip(t *testing.T) {
	path := sampleFile(t)
	s := must.Get(Open(path))(t)
	defer s.Close()
	if err := s.Verify(); err != nil {
		t.Error(err)
	}
	if s.Metadata["a"] != "{\"sha256\":\"0\"}" || s.Metadata["b"] != "2" {
		t.Errorf("metadata %q", s.Metadata)
	}
	for i, want := range sampleTensors() {
		if !reflect.DeepEqual(s.Tensors[i].Shape, append([]int{}, want.Shape...)) || s.Tensors[i].Name != want.Name {
			t.Errorf("tensor %d: %+v, want %+v", i, s.Tensors[i], want.TensorInfo)
		}
		var data bytes.Buffer
		if n, _ := want.Bytes(); n > 0 {
			must.Do(t, want.Write(&data))
		}
		got, err := io.ReadAll(s.Reader(want.Name))
		if err != nil || !bytes.Equal(got, data.Bytes()) {
			t.Errorf("tensor %s: %v, %v", want.Name, got, err)
		}
	}
	if s.Reader("nobody") != nil {
		t.Error("a tensor that is not there can be read")
	}
	if s.data%headerAlign != 0 {
		t.Errorf("the data begins at byte %d", s.data)
	}
	var infos []TensorInfo
	for _, x := range sampleTensors() {
		infos = append(infos, x.TensorInfo)
	}
	if n, err := Size(map[string]string{"b": "2", "a": "{\"sha256\":\"0\"}"}, infos); err != nil || n != s.Size() {
		t.Errorf("size %d, %v, the file has %d", n, err, s.Size())
	}
	again := must.Get(os.ReadFile(sampleFile(t)))(t)
	if first, err := os.ReadFile(path); err != nil || !bytes.Equal(first, again) {
		t.Error("equal contents make different files")
	}
}

// TestSafetensorsDamage changes every byte of a file and cuts it everywhere: never a panic, and never a file that
// passes for whole.
func TestSafetensorsDamage(t *testing.T) {
	whole := must.Get(os.ReadFile(sampleFile(t)))(t)
	passes := func(data []byte) bool {
		s, err := NewFile(bytes.NewReader(data), int64(len(data)))
		return err == nil && s.verify() == nil
	}
	if !passes(whole) {
		t.Fatal("the whole file does not pass")
	}
	for i := range whole {
		for _, flip := range []byte{1, 0x80, 0xff} {
			data := bytes.Clone(whole)
			data[i] ^= flip
			if passes(data) {
				t.Errorf("byte %d of %d is another and nobody notices", i, len(whole))
			}
		}
		if passes(whole[:i]) {
			t.Errorf("cut to %d of %d bytes and nobody notices", i, len(whole))
		}
	}
	if passes(append(bytes.Clone(whole), 0)) {
		t.Error("a byte more and nobody notices")
	}
}

// withHeader is a file of that header and size bytes of data.
func withHeader(header string, size int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, size)...)
}

func TestSafetensorsRefusals(t *testing.T) {
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a safetensors"},
		{"text", []byte("ply\nformat ascii 1.0\n"), "not a safetensors"},
		{"long header", append([]byte{0xff, 0xff, 0xff, 5, 0, 0, 0, 0}, '{', '}'), "the file has"},
		{"endless header", append(bytes.Repeat([]byte{0xff}, 8), '{', '}'), "not a safetensors"},
		{"not JSON", withHeader("{]", 0), "header"},
		{"huge shape", withHeader(`{"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,4]}}`, 4),
			"too many numbers"},
		{"negative", withHeader(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4), "side of -1"},
		{"beyond the end", withHeader(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4), "of the 4 behind the header"},
		{"first in the file", withHeader(`{"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},`+
			`"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4), `tensor "a": its 8 bytes`},
		{"wrong size", withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,8]}}`, 8), "of the 8 behind the header"},
		{"negative offset", withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}`, 4),
			"of the 4 behind the header"},
		{"hole", withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "begins at byte 4"},
		{"overlap", withHeader(
			`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8), "begins at byte 4"},
		{"rest", withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8), "the file has 8"},
		{"twice", withHeader(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), "twice"},
		{"type", withHeader(`{"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}}`, 4), "not known"},
		{"numbers in metadata", withHeader(`{"__metadata__":{"a":1}}`, 0), "header"},
		{"two objects", withHeader(`{}{}`, 0), "follows"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "x")
		must.Do(t, os.WriteFile(path, tt.data, 0o666))
		s, err := Open(path)
		if err == nil {
			s.Close()
			t.Errorf("%s: no error", tt.name)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || !errors.Is(err, fault.ErrData) || fault.Hint(err) == "" {
			t.Errorf("%s: %v, hint %q", tt.name, err, fault.Hint(err))
		}
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder was opened")
	}
	if s, err := NewFile(bytes.NewReader(withHeader("{}", 0)), 10); err != nil || !errors.Is(s.verify(), ErrHash) {
		t.Errorf("a file without a hash: %v", err)
	}
}

// TestSafetensorsWriterErrors wants no file, and no rest of one, where a tensor is too short, too long, or the disk is
// full.
func TestSafetensorsWriterErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(n int, err error) TensorData {
		return TensorData{TensorInfo{"a", "U8", []int{4}}, func(w io.Writer) error {
			if err != nil {
				return err
			}
			_, err := w.Write(make([]byte, n))
			return err
		}}
	}
	for name, tensors := range map[string][]TensorData{
		"short": {write(3, nil)}, "long": {write(5, nil)}, "full": {write(0, syscall.ENOSPC)},
		"twice": {write(4, nil), write(4, nil)},
		"type":  {{TensorInfo{"a", "F8", nil}, nil}},
	} {
		err := Write(filepath.Join(dir, name), nil, tensors)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if name == "full" && (!errors.Is(err, fault.ErrTryAgain) || fault.Hint(err) == "") {
			t.Errorf("of a full disk: %v, hint %q", err, fault.Hint(err))
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := Write(filepath.Join(dir, "x"), map[string]string{hashKey: ""}, nil); err == nil {
		t.Error("the hash can be given")
	}
}

// TestSafetensorsInPython opens a file with the package that defines the layout.
func TestSafetensorsInPython(t *testing.T) {
	filetest.NeedPython(t, "safetensors, numpy")
	script := `
import sys, safetensors
with safetensors.safe_open(sys.argv[1], "np") as f:
    assert f.metadata()["b"] == "2", f.metadata()
    assert f.get_tensor("means").tolist() == [[1, -2.5, 3], [4, 5, 6]]
    assert f.get_tensor("none").shape == (0, 3)
    assert f.get_tensor("flags").tolist() == [7, 8, 9]
    assert f.get_tensor('one "quoted"') == 0x04030201
`
	if out, err := exec.Command("python3", "-c", script, sampleFile(t)).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func FuzzSafetensors(f *testing.F) {
	whole := must.Get(os.ReadFile(sampleFile(f)))(f)
	f.Add(whole)
	f.Add(withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4))
	f.Add(withHeader(`{"__metadata__":null}   `, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := NewFile(bytes.NewReader(data), int64(len(data)))
		runtime.ReadMemStats(&after)
		if most := uint64(1<<20 + 64*len(data)); after.TotalAlloc-before.TotalAlloc > most {
			t.Errorf("%d bytes allocated for a file of %d", after.TotalAlloc-before.TotalAlloc, len(data))
		}
		if err != nil {
			return
		}
		var sum int64
		for _, x := range s.Tensors {
			n, err := io.Copy(io.Discard, s.Reader(x.Name))
			if want, _ := x.Bytes(); err != nil || n != want {
				t.Errorf("tensor %q: read %d bytes of %d: %v", x.Name, n, want, err)
			}
			sum += n
		}
		if sum != s.Length-s.data {
			t.Errorf("tensors of %d bytes, the file has %d", sum, s.Length-s.data)
		}
		_ = s.verify() // must not panic
	})
}
