package surface

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Meta is how a mesh was made.
type Meta struct {
	Generator string
	Origin    *[3]float64 // what was subtracted from the coordinates; nil: nothing
}

// WritePLY writes binary PLY: positions, normals and colours, in the frame of the mesh.
func (m *Mesh) WritePLY(to io.Writer, meta Meta) error {
	w := bufio.NewWriterSize(to, 1<<20)
	head := "ply\nformat binary_little_endian 1.0\n"
	if meta.Generator != "" {
		head += "comment " + meta.Generator + "\n"
	}
	if o := meta.Origin; o != nil {
		head += fmt.Sprintf("comment origin %g %g %g\n", o[0], o[1], o[2])
	}
	head += fmt.Sprintf("element vertex %d\n", len(m.Vertices))
	for _, name := range []string{"x", "y", "z", "nx", "ny", "nz"} {
		head += "property float " + name + "\n"
	}
	for _, name := range []string{"red", "green", "blue"} {
		head += "property uchar " + name + "\n"
	}
	head += fmt.Sprintf("element face %d\nproperty list uchar int vertex_indices\nend_header\n", len(m.Faces))
	if _, err := w.WriteString(head); err != nil {
		return err
	}
	row := make([]byte, 0, 32)
	for i := range m.Vertices {
		v := &m.Vertices[i]
		row = append(appendFloats(appendFloats(row[:0], v.At), v.Normal), v.Color[:]...)
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	for _, f := range m.Faces {
		row = append(row[:0], 3)
		for _, id := range f {
			row = binary.LittleEndian.AppendUint32(row, id)
		}
		if _, err := w.Write(row); err != nil {
			return err
		}
	}
	return w.Flush()
}

func appendFloats(b []byte, v [3]float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// ErrTooLarge says that a mesh does not fit binary glTF, which ends at 4 GiB.
var ErrTooLarge = errors.New("binary glTF ends at 4 GiB")

// glTF's own numbers (Khronos, glTF 2.0).
const (
	glTFFloat    = 5126
	glTFWord     = 5123
	glTFUint     = 5125
	glTFVertices = 34962 // a buffer view of vertices
	glTFIndices  = 34963
)

// WriteGLB writes binary glTF, whose y is up: what was down in the frame of the mesh is turned. Colours are linear
// there, and the material is drawn without light, as photos have theirs.
func (m *Mesh) WriteGLB(to io.Writer, meta Meta) error {
	n, faces := int64(len(m.Vertices)), int64(len(m.Faces))
	sizes := []int64{12 * n, 12 * n, 8 * n, 12 * faces}
	var total int64
	for _, size := range sizes {
		total += size
	}
	text, err := json.Marshal(m.glTF(meta, sizes, total))
	if err != nil {
		return err
	}
	for len(text)%4 != 0 {
		text = append(text, ' ')
	}
	if total+int64(len(text))+28 > math.MaxUint32 {
		return ErrTooLarge
	}
	head := []byte("glTF")
	for _, x := range []int64{2, 28 + int64(len(text)) + total, int64(len(text)), 0x4e4f534a} {
		head = binary.LittleEndian.AppendUint32(head, uint32(x))
	}
	head = append(head, text...)
	head = binary.LittleEndian.AppendUint32(head, uint32(total))
	head = binary.LittleEndian.AppendUint32(head, 0x004e4942)
	w := bufio.NewWriterSize(to, 1<<20)
	if _, err := w.Write(head); err != nil {
		return err
	}
	row := make([]byte, 0, 16)
	each := func(put func(v *Vertex) []byte) {
		for i := range m.Vertices {
			row = put(&m.Vertices[i])
			_, _ = w.Write(row) // Flush returns the first error
		}
	}
	each(func(v *Vertex) []byte { return appendFloats(row[:0], upright(v.At)) })
	each(func(v *Vertex) []byte { return appendFloats(row[:0], upright(v.Normal)) })
	each(func(v *Vertex) []byte {
		row = row[:0]
		for _, x := range v.Color {
			row = binary.LittleEndian.AppendUint16(row, linearWords[x])
		}
		return binary.LittleEndian.AppendUint16(row, math.MaxUint16)
	})
	for _, f := range m.Faces {
		row = row[:0]
		for _, id := range f {
			row = binary.LittleEndian.AppendUint32(row, id)
		}
		_, _ = w.Write(row)
	}
	return w.Flush()
}

// upright turns the frame of captures (right, down, forward) to glTF's (left, up, forward).
func upright(v [3]float32) [3]float32 { return [3]float32{-v[0], -v[1], v[2]} }

// linearWords are sRGB bytes as linear words: bytes would lose dark tones.
var linearWords = func() (out [256]uint16) {
	for i := range out {
		x := float64(i) / 255
		if x <= 0.04045 {
			x /= 12.92
		} else {
			x = math.Pow((x+0.055)/1.055, 2.4)
		}
		out[i] = uint16(math.Round(math.MaxUint16 * x))
	}
	return out
}()

// glTF is the JSON of a mesh whose planes (positions, normals, colours, corners of faces) have these sizes.
func (m *Mesh) glTF(meta Meta, sizes []int64, total int64) any {
	type object = map[string]any
	low, high := [3]float32{}, [3]float32{}
	for i := range m.Vertices {
		at := upright(m.Vertices[i].At)
		for k := range 3 {
			if i == 0 {
				low[k], high[k] = at[k], at[k]
			}
			low[k], high[k] = min(low[k], at[k]), max(high[k], at[k])
		}
	}
	views, start := []object{}, int64(0)
	for i, size := range sizes {
		view := object{"buffer": 0, "byteOffset": start, "byteLength": size, "target": glTFVertices}
		if i == len(sizes)-1 {
			view["target"] = glTFIndices
		}
		views, start = append(views, view), start+size
	}
	asset := object{"version": "2.0"}
	if meta.Generator != "" {
		asset["generator"] = meta.Generator
	}
	if meta.Origin != nil {
		asset["extras"] = object{"vksplat": object{"origin": meta.Origin}}
	}
	n := len(m.Vertices)
	return object{
		"asset": asset, "scene": 0, "scenes": []object{{"nodes": []int{0}}}, "nodes": []object{{"mesh": 0}},
		"extensionsUsed": []string{"KHR_materials_unlit"},
		"materials": []object{{"doubleSided": true, "extensions": object{"KHR_materials_unlit": object{}},
			"pbrMetallicRoughness": object{"metallicFactor": 0, "roughnessFactor": 1}}},
		"meshes": []object{{"primitives": []object{{"material": 0, "indices": 3,
			"attributes": object{"POSITION": 0, "NORMAL": 1, "COLOR_0": 2}}}}},
		"accessors": []object{
			{"bufferView": 0, "componentType": glTFFloat, "count": n, "type": "VEC3", "min": low, "max": high},
			{"bufferView": 1, "componentType": glTFFloat, "count": n, "type": "VEC3"},
			{"bufferView": 2, "componentType": glTFWord, "normalized": true, "count": n, "type": "VEC4"},
			{"bufferView": 3, "componentType": glTFUint, "count": 3 * len(m.Faces), "type": "SCALAR"},
		},
		"bufferViews": views, "buffers": []object{{"byteLength": total}},
	}
}
