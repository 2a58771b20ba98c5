package usd

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
)

// small is a layer with every kind of value.
func small(numbers ...float32) *Layer {
	var data []byte
	for _, x := range numbers {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	array := func(kind Kind) Array {
		return Array{N: int64(len(numbers) / kind.width()), Kind: kind,
			Data: func() io.Reader { return bytes.NewReader(data) }}
	}
	return &Layer{Doc: "a \"test\"\nof \\", MetersPerUnit: 0.1, Root: Prim{Name: "Model", Type: "Xform",
		Children: []Prim{
			{Name: "A", Type: "Scope", Attributes: []Attribute{
				{Name: "words", Type: "string", Custom: true, Value: String("hello")},
				{Name: "some:n", Type: "int", Uniform: true, Custom: true, Value: Int(-3)},
			}},
			{Name: "B", Type: "Scope", Attributes: []Attribute{
				{Name: "f", Type: "float[]", Custom: true, Value: array(Float)},
				{Name: "v", Type: "float3[]", Custom: true, Value: array(Float3)},
				{Name: "q", Type: "quatf[]", Custom: true, Value: array(Quat)},
				{Name: "purpose", Type: "token", Uniform: true, Value: Token("render")},
			}},
		}}}
}

var twelve = []float32{1, 2.5, -3, 0.1, 1e-20, 6, 7, 8, 9, 10, 11, 12}

const wantText = `#usda 1.0
(
    defaultPrim = "Model"
    upAxis = "Y"
    metersPerUnit = 0.1
    doc = "a \"test\"\nof \\"
)

def Xform "Model"
{

    def Scope "A"
    {
        custom string words = "hello"
        custom uniform int some:n = -3
    }

    def Scope "B"
    {
        custom float[] f = [1, 2.5, -3, 0.1, 1e-20, 6, 7, 8, 9, 10, 11, 12]
        custom float3[] v = [(1, 2.5, -3), (0.1, 1e-20, 6), (7, 8, 9), (10, 11, 12)]
        custom quatf[] q = [(0.1, 1, 2.5, -3), (8, 1e-20, 6, 7), (12, 9, 10, 11)]
        uniform token purpose = "render"
    }
}
`

func TestText(t *testing.T) {
	var got bytes.Buffer
	if err := WriteText(&got, small(twelve...)); err != nil || got.String() != wantText {
		t.Errorf("%v, %s", err, got.String())
	}
}

// crateSum is that of bytes that Pixar's library 26.11 read as wantText has it.
const crateSum = "a63381b49c22e8faed74a20c89735dd2de4503b0f974b9bab390d7ba5dfc31f6"

func TestCrate(t *testing.T) {
	var got bytes.Buffer
	must.Do(t, WriteCrate(&got, small(twelve...)))
	if int64(got.Len()) != CrateSize(small(twelve...)) {
		t.Errorf("%d bytes, CrateSize says %d", got.Len(), CrateSize(small(twelve...)))
	}
	sum := sha256.Sum256(got.Bytes())
	if hex.EncodeToString(sum[:]) != crateSum {
		t.Errorf("the bytes have changed: %x; let Pixar's library read them (TestUSDReads) before taking this in", sum)
	}
}

func TestPackage(t *testing.T) {
	var got, crate bytes.Buffer
	for _, name := range []string{"a.usdc", "model.usdc", strings.Repeat("x", 34), strings.Repeat("x", 32)} {
		got.Reset()
		crate.Reset()
		err := errors.Join(WritePackage(&got, small(twelve...), name), WriteCrate(&crate, small(twelve...)))
		if err != nil {
			t.Fatal(err)
		}
		archive, err := zip.NewReader(bytes.NewReader(got.Bytes()), int64(got.Len()))
		if err != nil || len(archive.File) != 1 || archive.File[0].Name != name {
			t.Fatalf("%v, %+v", err, archive)
		}
		f := archive.File[0]
		at, err := f.DataOffset()
		if err != nil || at%packageAlign != 0 || f.Method != zip.Store {
			t.Errorf("%s begins at byte %d, %v, method %d", name, at, err, f.Method)
		}
		r := must.Get(f.Open())(t)
		// its checksum is looked at, too
		if data, err := io.ReadAll(r); err != nil || !bytes.Equal(data, crate.Bytes()) {
			t.Errorf("%s: %v, %d bytes, want %d", name, err, len(data), crate.Len())
		}
	}
}

// TestShortArray wants data that ends early to be an error, of all forms.
func TestShortArray(t *testing.T) {
	l := small(twelve...)
	v := l.Root.Children[1].Attributes[0].Value.(Array)
	v.N++
	l.Root.Children[1].Attributes[0].Value = v
	for i, err := range []error{WriteText(io.Discard, l), WriteCrate(io.Discard, l),
		WritePackage(io.Discard, l, "a.usdc")} {
		if err == nil {
			t.Errorf("form %d takes an array that ends early", i)
		}
	}
}

// TestSqueeze undoes squeeze, for sizes around those where its head grows.
func TestSqueeze(t *testing.T) {
	for _, n := range []int{0, 1, 14, 15, 16, 269, 270, 271, 524, 525, 5000} {
		b := bytes.Repeat([]byte{7}, n)
		packed := squeeze(b)
		if packed[0] != 0 {
			t.Fatalf("%d blocks", packed[0])
		}
		at, length := 2, int(packed[1]>>4)
		for more := byte(255); length >= 15 && more == 255; at++ {
			more = packed[at]
			length += int(more)
		}
		if length != n || !bytes.Equal(packed[at:], b) {
			t.Errorf("%d bytes became %d", n, length)
		}
	}
}
