package safetensors

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// Files in the safetensors layout (github.com/huggingface/safetensors): 8 bytes of little-endian header length, a JSON
// header that names each tensor's type, shape and range of bytes, then the tensors without holes. Its key __metadata__
// holds strings alone.

// hashKey is the metadata key under which a file carries the SHA-256 of itself, in hexadecimal, taken with zeros in the
// digits' place.
const hashKey = "sha256"

const (
	hashDigits      = 64
	metadataKey     = "__metadata__"
	headerAlign     = 64        // of the first tensor in the file
	maxHeader       = 100 << 20 // bytes of header; Python's reader has the same limit
	maxTensorRank   = 8
	lengthBytes     = 8 // of the header's length
	damagedHint     = "the file may be cut short or damaged: use an earlier one, or copy it again"
	notTensorsHint  = "name a file that vksplat or another program wrote in the safetensors layout"
	safetensorsRead = "read safetensors"
)

// dtypeBytes is the size of a number of each type.
var dtypeBytes = map[string]int64{
	"BOOL": 1, "U8": 1, "I8": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2, "U32": 4, "I32": 4, "F32": 4, "U64": 8,
	"I64": 8, "F64": 8,
}

// TensorInfo describes a tensor of a file.
type TensorInfo struct {
	Name  string `json:"name"`
	DType string `json:"dtype"` // F32, U32 and so on
	Shape []int  `json:"shape"` // row-major; [] is a single number
}

// errTooLarge says that a shape has more bytes than any file.
var errTooLarge = errors.New("its shape has too many numbers")

// Bytes returns the tensor's size, or an error for a type or shape that no file can hold.
func (t TensorInfo) Bytes() (int64, error) {
	n, known := dtypeBytes[t.DType]
	if !known {
		return 0, fmt.Errorf("type %q is not known", t.DType)
	}
	if len(t.Shape) > maxTensorRank {
		return 0, fmt.Errorf("it has %d dimensions, at most %d are allowed", len(t.Shape), maxTensorRank)
	}
	empty := false
	for _, d := range t.Shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("a side of %d numbers", d)
		case d == 0:
			empty = true
		case n > math.MaxInt64/2/int64(d):
			return 0, errTooLarge
		default:
			n *= int64(d)
		}
	}
	if empty {
		return 0, nil
	}
	return n, nil
}

// tensorEntry is a tensor's entry in the header.
type tensorEntry struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // from the end of the header
}

// encodeHeader words the header, padded so that the data begins at a multiple of headerAlign, and returns where in it
// the digits of the hash are. The order is the caller's and that of sorted keys, so that equal contents make equal
// bytes.
func encodeHeader(metadata map[string]string, tensors []TensorInfo) (header []byte, digitsAt int, err error) {
	if _, taken := metadata[hashKey]; taken {
		return nil, 0, fmt.Errorf("the metadata key %q is the writer's own", hashKey)
	}
	seen := map[string]bool{metadataKey: true}
	var b strings.Builder
	text, err := json.Marshal(metadata)
	if err != nil {
		return nil, 0, err
	}
	// The hash comes first, so that its place depends on nothing.
	b.WriteString(`{"` + metadataKey + `":{"` + hashKey + `":"`)
	digitsAt = b.Len()
	b.WriteString(strings.Repeat("0", hashDigits) + `"`)
	if len(metadata) > 0 {
		b.WriteString("," + string(text[1:len(text)-1]))
	}
	b.WriteString("}")
	var off int64
	for _, t := range tensors {
		size, err := t.Bytes()
		if err == nil && seen[t.Name] {
			err = errors.New("the name is taken")
		}
		if err == nil && size > math.MaxInt64/2-off {
			err = errTooLarge
		}
		if err != nil {
			return nil, 0, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		seen[t.Name] = true
		e := tensorEntry{DType: t.DType, Shape: append([]int{}, t.Shape...), Offsets: [2]int64{off, off + size}}
		off += size
		name, err1 := json.Marshal(t.Name)
		entry, err2 := json.Marshal(e)
		if err := errors.Join(err1, err2); err != nil {
			return nil, 0, err
		}
		fmt.Fprintf(&b, ",%s:%s", name, entry)
	}
	b.WriteString("}")
	for (lengthBytes+b.Len())%headerAlign != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > maxHeader {
		return nil, 0, fmt.Errorf("a header of %d bytes, at most %d are allowed", b.Len(), maxHeader)
	}
	return []byte(b.String()), digitsAt, nil
}
