package safetensors

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
	"vksplat/internal/filekind"
	"vksplat/internal/strictjson"
)

// File is an open file of tensors. Nothing of the tensors is in memory.
type File struct {
	Metadata map[string]string
	Tensors  []TensorInfo // in the order of the file

	path   string
	R      io.ReaderAt
	closer io.Closer
	Length int64
	data   int64 // offset of the first tensor
	header []byte
	starts map[string]int64 // from data, by name

	hashing sync.Once
	damage  error // of the hash, after hashing
}

// ErrNotSafetensors says that a file has not the layout at all.
var ErrNotSafetensors = errors.New("not a safetensors file")

// ErrHash says that a file is not what was written.
var ErrHash = errors.New("the file's hash is not the recorded one")

// Open reads the header of a file and checks that the file holds exactly what the header says. Memory is bounded by the
// size of the file, whatever the header claims. Errors are of kind fault.ErrData.
func Open(path string) (*File, error) {
	f, size, err := fault.Open(path)
	if err != nil {
		return nil, safetensorsError(path, err)
	}
	s, err := NewFile(f, size)
	if err != nil {
		head, _ := io.ReadAll(io.NewSectionReader(f, 0, 512)) // as much as can be read
		if kind, hint := filekind.Of("", head); kind != "" && errors.Is(err, ErrNotSafetensors) {
			err = &fault.Error{Err: fmt.Errorf("%w: it is %s", err, kind), Hint: hint}
		}
		return nil, safetensorsError(path, errors.Join(err, f.Close()))
	}
	s.path, s.closer = path, f
	return s, nil
}

// safetensorsError names the file in an error.
func safetensorsError(path string, err error) error {
	out := &fault.Error{Op: safetensorsRead, Path: path, Err: fault.TrimPath(err), Hint: damagedHint}
	switch hint := fault.OwnHint(err); {
	case hint != "":
		out.Hint = hint
	case errors.Is(err, ErrNotSafetensors):
		out.Hint = notTensorsHint
	case errors.Is(err, os.ErrNotExist):
		out.Hint = "check the spelling of the path"
	case errors.Is(err, os.ErrPermission):
		out.Hint, out.Kind = "make the file readable for this user", fault.ErrTryAgain
	}
	return out
}

func NewFile(r io.ReaderAt, size int64) (*File, error) {
	var length [lengthBytes]byte
	if size < lengthBytes+2 {
		return nil, ErrNotSafetensors
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, ErrNotSafetensors
	}
	var first [1]byte
	if _, err := r.ReadAt(first[:], lengthBytes); err != nil {
		return nil, err
	}
	if first[0] != '{' || n < 2 {
		return nil, ErrNotSafetensors
	}
	if int64(n) > size-lengthBytes {
		return nil, fmt.Errorf("its header would have %d bytes, the file has %d", n, size)
	}
	s := &File{R: r, Length: size, data: lengthBytes + int64(n), header: make([]byte, n), starts: map[string]int64{}}
	if _, err := r.ReadAt(s.header, lengthBytes); err != nil {
		return nil, err
	}
	if err := s.parse(); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	return s, nil
}

// parse takes in the header. Names that appear twice are refused: readers differ in which of the two they take.
func (s *File) parse() error {
	entries := map[string]tensorEntry{}
	d := json.NewDecoder(bytes.NewReader(s.header))
	if _, err := d.Token(); err != nil { // the brace
		return err
	}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, ok := token.(string)
		if _, twice := entries[name]; twice || !ok || name == metadataKey && s.Metadata != nil {
			return fmt.Errorf("name %q appears twice", name)
		}
		if name == metadataKey {
			if err := d.Decode(&s.Metadata); err != nil {
				return fmt.Errorf("metadata: %w", strictjson.JSONError(err))
			}
			if s.Metadata == nil { // null
				s.Metadata = map[string]string{}
			}
			continue
		}
		var e tensorEntry
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("tensor %q: %w", name, strictjson.JSONError(err))
		}
		entries[name] = e
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return err
	}
	if rest := s.header[d.InputOffset():]; len(bytes.TrimRight(rest, " \t\r\n")) > 0 {
		return errors.New("something follows the closing brace")
	}
	return s.order(entries)
}

// order checks that the tensors lie without holes from the end of the header to the end of the file.
func (s *File) order(entries map[string]tensorEntry) error {
	// In the order of the file, so that the first that is wrong is named.
	names := slices.SortedFunc(maps.Keys(entries), func(a, b string) int {
		x, y := entries[a].Offsets, entries[b].Offsets
		return cmp.Or(slices.Compare(x[:], y[:]), strings.Compare(a, b))
	})
	for _, name := range names {
		e := entries[name]
		t := TensorInfo{Name: name, DType: e.DType, Shape: e.Shape}
		want, err := t.Bytes()
		if err == nil && (e.Offsets[0] < 0 || e.Offsets[1] > s.Length-s.data || e.Offsets[1]-e.Offsets[0] != want) {
			err = fmt.Errorf("its %d bytes would be %d to %d of the %d behind the header, in a file of %d", want,
				e.Offsets[0], e.Offsets[1], s.Length-s.data, s.Length)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		s.Tensors = append(s.Tensors, t)
		s.starts[name] = e.Offsets[0]
	}
	var at int64
	for _, t := range s.Tensors {
		if e := entries[t.Name]; e.Offsets[0] != at {
			return fmt.Errorf("tensor %q begins at byte %d, the one before ends at %d", t.Name, e.Offsets[0], at)
		}
		at = entries[t.Name].Offsets[1]
	}
	if have := s.Length - s.data; at != have {
		return fmt.Errorf("the tensors have %d bytes, the file has %d for them", at, have)
	}
	return nil
}

// Lookup returns the tensor of that name.
func (s *File) Lookup(name string) (TensorInfo, bool) {
	for _, t := range s.Tensors {
		if t.Name == name {
			return t, true
		}
	}
	return TensorInfo{}, false
}

// Reader returns the bytes of the tensor of that name, or nil where there is none.
func (s *File) Reader(name string) *io.SectionReader {
	t, ok := s.Lookup(name)
	if !ok {
		return nil
	}
	n, err := t.Bytes()
	if err != nil {
		return nil // order has refused it
	}
	return io.NewSectionReader(s.R, s.data+s.starts[name], n)
}

// Size returns the bytes of the file.
func (s *File) Size() int64 { return s.Length }

// Verify reads the whole file and compares it with the hash that it carries. The error wraps ErrHash when they differ.
// Later calls return the result of the first.
func (s *File) Verify() error {
	s.hashing.Do(func() {
		if err := s.verify(); err != nil {
			s.damage = safetensorsError(s.path, err)
		}
	})
	return s.damage
}

func (s *File) verify() error {
	digits, ok := s.Metadata[hashKey]
	if !ok {
		return fmt.Errorf("%w: it carries none", ErrHash)
	}
	want, err := hex.DecodeString(digits)
	field := []byte(`"` + hashKey + `":"` + digits)
	at := bytes.Index(s.header, field)
	if err != nil || len(want) != sha256.Size || at < 0 {
		return ErrHash
	}
	header := slices.Clone(s.header)
	copy(header[at+len(field)-len(digits):], bytes.Repeat([]byte("0"), len(digits)))
	hash := sha256.New()
	hash.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(header))))
	hash.Write(header)
	if _, err := io.CopyBuffer(hash, io.NewSectionReader(s.R, s.data, s.Length-s.data),
		make([]byte, atomicfile.WriteBuffer)); err != nil {
		return err
	}
	if !bytes.Equal(hash.Sum(nil), want) {
		return ErrHash
	}
	return nil
}

// Close closes the file, once.
func (s *File) Close() error {
	c := s.closer
	if c == nil {
		return nil
	}
	s.closer = nil
	return c.Close()
}

// Floats returns the numbers of a tensor of float32 that must have this shape. No number may be infinite or NaN.
func (s *File) Floats(name string, shape ...int) ([]float32, error) {
	t, ok := s.Lookup(name)
	switch {
	case !ok:
		return nil, fmt.Errorf("tensor %q is missing", name)
	case t.DType != "F32":
		return nil, fmt.Errorf("tensor %q is of type %s, not F32", name, t.DType)
	case !slices.Equal(t.Shape, shape):
		return nil, fmt.Errorf("tensor %q is %v, not %v", name, t.Shape, shape)
	}
	r := s.Reader(name)
	raw := make([]byte, r.Size()) // the file has them
	if _, err := io.ReadFull(r, raw); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	x := make([]float32, len(raw)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		if v := float64(x[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("tensor %q: number %d is %g", name, i, v)
		}
	}
	return x, nil
}
