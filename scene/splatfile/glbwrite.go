package splatfile

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// glbAttribute is a plane of a file that is written.
type glbAttribute struct {
	name  string
	kind  string // SCALAR, VEC3 or VEC4
	bytes bool   // of normalised unsigned bytes instead of float32
}

func (a glbAttribute) width() int {
	if a.bytes {
		return glbTypes[a.kind]
	}
	return 4 * glbTypes[a.kind]
}

// glbAttributes are the planes of a degree in their order. COLOR_0 is for viewers that know points only.
func glbAttributes(degree int) []glbAttribute {
	all := []glbAttribute{
		{glbPosition, "VEC3", false}, {glbRotation, "VEC4", false}, {glbScale, "VEC3", false},
		{glbOpacity, "SCALAR", false}, {glbColor, "VEC4", true},
	}
	for k := range scene.SHCoefficients(degree) {
		all = append(all, glbAttribute{glbSH(k), "VEC3", false})
	}
	return all
}

func writeGLB(path string, model Source, o WriteOptions) ([]string, error) {
	info := model.Info()
	attributes := glbAttributes(info.Degree)
	widths := make([]int, len(attributes))
	for i, a := range attributes {
		widths[i] = a.width()
	}
	p := newPlanes(info.N, widths, planesInMemory, o.FolderFor(path))
	switch {
	case info.N == 0:
		return nil, refusal("write another format", "glTF cannot hold a model without splats")
	case p.size() > math.MaxUint32-(1<<20): // what is left is more than the JSON takes
		return nil, refusal("lower the degree of the spherical harmonics, write fewer splats, or another format",
			"%d splats of degree %d take %d bytes, and binary glTF ends at 4 GiB", info.N, info.Degree, p.size())
	}
	defer func() { _ = p.close() }() // what it held is written, or has failed
	positions := emptyBox()
	err := p.fill(model, glbFrame, func(first int, piece *scene.Splats, packed [][]byte) error {
		positions.add(piece.Means)
		return packGLB(first, piece, packed)
	})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(glbJSON(info, attributes, p, positions))
	if err != nil {
		return nil, err
	}
	for len(text)%4 != 0 {
		text = append(text, ' ')
	}
	err = atomicfile.Write(path, func(w io.Writer) error {
		if _, err := w.Write(glbHead(text, p.size())); err != nil {
			return err
		}
		_, err := io.Copy(w, p.all())
		return err
	})
	return lostComments(info, "glTF"), err
}

// glbHead gives the bytes before the binary data. The planes' widths are multiples of 4 bytes, so that nothing needs
// padding.
func glbHead(text []byte, data int64) []byte {
	head := binary.LittleEndian.AppendUint32([]byte(glbMagic), glbVersion)
	head = binary.LittleEndian.AppendUint32(head, uint32(glbHeader+2*glbChunk+int64(len(text))+data))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(text)))
	head = binary.LittleEndian.AppendUint32(head, glbChunkJSON)
	head = append(head, text...)
	head = binary.LittleEndian.AppendUint32(head, uint32(data))
	return binary.LittleEndian.AppendUint32(head, glbChunkBIN)
}

// packGLB writes the planes of a piece whose rotations are normalised and whose axes are glTF's. Its first splat is
// number first of the model.
func packGLB(first int, piece *scene.Splats, packed [][]byte) error {
	k := piece.K()
	float := func(plane int, values ...float32) {
		packed[plane] = appendFloats(packed[plane], values...)
	}
	for i := range piece.N {
		q, sh := piece.Quats[4*i:4*i+4], piece.SH[3*k*i:3*k*(i+1)]
		float(0, piece.Means[3*i:3*i+3]...)
		float(1, q[1], q[2], q[3], q[0])
		for _, x := range piece.LogScales[3*i : 3*i+3] {
			length := float32(math.Exp(float64(x)))
			if math.IsInf(float64(length), 0) {
				return unwritable(first+i, fmt.Errorf("a scale of exp(%g) is not a finite number", x))
			}
			float(2, length)
		}
		float(3, float32(sigmoid(piece.LogitOpacities[i])))
		for _, x := range sh[:3] {
			packed[4] = append(packed[4], uint8(unit(colorOf(x), 255)))
		}
		packed[4] = append(packed[4], opacityByte(piece.LogitOpacities[i]))
		for j := range k {
			float(5+j, sh[3*j:3*j+3]...)
		}
	}
	return nil
}

// glbJSON describes a file with a buffer view for each attribute.
func glbJSON(info Info, attributes []glbAttribute, p *planes, positions box) gltfRoot {
	root, _ := glbFrameOf(info, attributes, p.size(), positions)
	for i := range attributes {
		root.Accessors[i].BufferView = &i
		root.BufferViews = append(root.BufferViews,
			gltfBufferView{ByteOffset: p.starts[i], ByteLength: p.starts[i+1] - p.starts[i], Target: glbArrayKind})
	}
	return root
}

// glbFrameOf describes a file but for where its bytes are: one node, one mesh of points, an accessor for each
// attribute.
func glbFrameOf(info Info, attributes []glbAttribute, bytes int64, positions box) (gltfRoot, *gltfSplats) {
	first, mode := 0, glbPoints
	extension := &gltfSplats{Kernel: glbKernel, ColorSpace: glbColorSpace, SortingMethod: "cameraDistance",
		Projection: "perspective"}
	splats := gltfPrimitive{Attributes: map[string]int{}, Mode: &mode}
	splats.Extensions.Splats = extension
	root := gltfRoot{
		Asset:          gltfAsset{Version: "2.0", Generator: info.Meta.Generator, Extras: extrasOf(info.Meta, true)},
		ExtensionsUsed: []string{glbSplats},
		Scene:          &first,
		Scenes:         []gltfScene{{Nodes: []int{0}}},
		Nodes:          []gltfNode{{Mesh: &first}},
		Meshes:         []gltfMesh{{Primitives: []gltfPrimitive{splats}}},
		Buffers:        []gltfBuffer{{ByteLength: bytes}},
	}
	for i, a := range attributes {
		accessor := gltfAccessor{ComponentType: glbFloat, Count: int64(info.N), Type: a.kind}
		if a.bytes {
			accessor.ComponentType, accessor.Normalized = 5121, true
		}
		if a.name == glbPosition {
			for axis := range 3 {
				accessor.Min, accessor.Max = append(accessor.Min, float64(positions.low[axis])),
					append(accessor.Max, float64(positions.high[axis]))
			}
		}
		splats.Attributes[a.name] = i
		root.Accessors = append(root.Accessors, accessor)
	}
	return root, extension
}
