package splatfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"vksplat/internal/fault"
	"vksplat/internal/strictjson"
)

// glb is binary glTF 2.0 with the extension KHR_gaussian_splatting as the Khronos Group ratified it: scales are lengths
// (a draft before had logarithms), opacities lie between 0 and 1, kernel and colour space must be named.
var glb = &Format{
	Name:       glbName,
	Extensions: []string{".glb"},
	Detect:     isGLB,
	Open:       openGLB,
	Write:      writer("write glb", writeGLB, glbVersion),
}

const (
	glbName       = "glb"
	opReadGLB     = "read glb"
	glbMagic      = "glTF"
	glbVersion    = 2
	glbChunkJSON  = 0x4e4f534a
	glbChunkBIN   = 0x004e4942
	glbHeader     = 12
	glbChunk      = 8
	glbMaxJSON    = 8 << 20 // bytes of JSON that are read; a model of splats has some thousands
	glbSplats     = "KHR_gaussian_splatting"
	glbSplatsSPZ  = "KHR_gaussian_splatting_compression_spz_2"
	glbPosition   = "POSITION"
	glbRotation   = glbSplats + ":ROTATION"
	glbScale      = glbSplats + ":SCALE"
	glbOpacity    = glbSplats + ":OPACITY"
	glbColor      = "COLOR_0"
	glbPoints     = 0 // the mode of a primitive
	glbFloat      = 5126
	glbArrayKind  = 34962 // the target of a view of vertex attributes
	glbKernel     = "ellipse"
	glbColorSpace = "srgb_rec709_display"
)

// glbFrame are the factors from glTF's axes (left, up, forward) to ours.
var glbFrame = [3]float32{-1, -1, 1}

// glbSH names coefficient k of the spherical harmonics.
func glbSH(k int) string {
	degree := int(math.Sqrt(float64(k)))
	return fmt.Sprintf("%s:SH_DEGREE_%d_COEF_%d", glbSplats, degree, k-degree*degree)
}

func isGLB(head []byte) bool {
	return len(head) >= 8 && string(head[:4]) == glbMagic && binary.LittleEndian.Uint32(head[4:]) == glbVersion
}

// The JSON of glTF, as far as it concerns splats.
type (
	gltfRoot struct {
		Asset              gltfAsset        `json:"asset"`
		ExtensionsUsed     []string         `json:"extensionsUsed,omitempty"`
		ExtensionsRequired []string         `json:"extensionsRequired,omitempty"`
		Scene              *int             `json:"scene,omitempty"`
		Scenes             []gltfScene      `json:"scenes,omitempty"`
		Nodes              []gltfNode       `json:"nodes,omitempty"`
		Meshes             []gltfMesh       `json:"meshes,omitempty"`
		Accessors          []gltfAccessor   `json:"accessors,omitempty"`
		BufferViews        []gltfBufferView `json:"bufferViews,omitempty"`
		Buffers            []gltfBuffer     `json:"buffers,omitempty"`
	}
	gltfAsset struct {
		Version   string  `json:"version"`
		Generator string  `json:"generator,omitempty"`
		Extras    *extras `json:"extras,omitempty"`
	}
	gltfScene struct {
		Nodes []int `json:"nodes,omitempty"`
	}
	gltfNode struct {
		Mesh        *int      `json:"mesh,omitempty"`
		Children    []int     `json:"children,omitempty"`
		Matrix      []float64 `json:"matrix,omitempty"`
		Translation []float64 `json:"translation,omitempty"`
		Rotation    []float64 `json:"rotation,omitempty"`
		Scale       []float64 `json:"scale,omitempty"`
	}
	gltfMesh struct {
		Primitives []gltfPrimitive `json:"primitives"`
	}
	gltfPrimitive struct {
		Attributes map[string]int `json:"attributes"`
		Mode       *int           `json:"mode,omitempty"`
		Extensions struct {
			Splats *gltfSplats `json:"KHR_gaussian_splatting,omitempty"`
		} `json:"extensions"`
	}
	gltfSplats struct {
		Kernel        string         `json:"kernel,omitempty"`
		ColorSpace    string         `json:"colorSpace,omitempty"`
		SortingMethod string         `json:"sortingMethod,omitempty"`
		Projection    string         `json:"projection,omitempty"`
		Extensions    *gltfSplatsSPZ `json:"extensions,omitempty"`
	}
	gltfSplatsSPZ struct {
		SPZ *gltfSPZ `json:"KHR_gaussian_splatting_compression_spz_2,omitempty"`
	}
	gltfSPZ struct {
		BufferView int `json:"bufferView"`
	}
	gltfAccessor struct {
		BufferView    *int            `json:"bufferView,omitempty"`
		ByteOffset    int64           `json:"byteOffset,omitempty"`
		ComponentType int             `json:"componentType"`
		Normalized    bool            `json:"normalized,omitempty"`
		Count         int64           `json:"count"`
		Type          string          `json:"type"`
		Min           []float64       `json:"min,omitempty"`
		Max           []float64       `json:"max,omitempty"`
		Sparse        json.RawMessage `json:"sparse,omitempty"`
	}
	gltfBufferView struct {
		Buffer     int   `json:"buffer"`
		ByteOffset int64 `json:"byteOffset,omitempty"`
		ByteLength int64 `json:"byteLength"`
		ByteStride int64 `json:"byteStride,omitempty"`
		Target     int   `json:"target,omitempty"`
	}
	gltfBuffer struct {
		URI        string `json:"uri,omitempty"`
		ByteLength int64  `json:"byteLength"`
	}
)

// glbFile is the JSON of a file and where its binary chunk lies.
type glbFile struct {
	root    gltfRoot
	r       io.ReaderAt
	binary  int64 // where the bytes of the binary chunk begin
	binSize int64 // how many they are
	surplus int64 // bytes that are in no chunk and no buffer
}

// readGLB reads the header, the JSON, and the head of the binary chunk of size bytes of r.
func readGLB(r io.ReaderAt, size int64) (*glbFile, error) {
	var head [glbHeader + glbChunk]byte
	if _, err := r.ReadAt(head[:], 0); err != nil || string(head[:4]) != glbMagic {
		start, _ := io.ReadAll(io.NewSectionReader(r, 0, headBytes)) // as much as can be read
		return nil, otherKind(errors.New("it is not binary glTF"), start)
	}
	version, length := binary.LittleEndian.Uint32(head[4:]), int64(binary.LittleEndian.Uint32(head[8:]))
	text, kind := int64(binary.LittleEndian.Uint32(head[12:])), binary.LittleEndian.Uint32(head[16:])
	begin := int64(glbHeader + glbChunk)
	switch {
	case version != glbVersion:
		return nil, fmt.Errorf("it is binary glTF of version %d, only %d is supported", version, glbVersion)
	case length > size:
		return nil, fmt.Errorf("the header claims %d bytes, the file has %d", length, size)
	case kind != glbChunkJSON || text > length-begin:
		return nil, fmt.Errorf("the first chunk claims %d bytes of JSON in a file of %d", text, length)
	case text > glbMaxJSON:
		return nil, fmt.Errorf("%d bytes of JSON are more than a model of splats needs", text)
	}
	raw := make([]byte, text)
	if _, err := r.ReadAt(raw, begin); err != nil {
		return nil, err
	}
	f := &glbFile{r: r}
	if err := json.Unmarshal(raw, &f.root); err != nil {
		return nil, strictjson.JSONError(err)
	}
	at := begin + text
	if length-at < glbChunk {
		f.surplus = size - at
		return f, nil
	}
	if _, err := r.ReadAt(head[:glbChunk], at); err != nil {
		return nil, err
	}
	f.binary, f.binSize = at+glbChunk, int64(binary.LittleEndian.Uint32(head[:]))
	if f.binSize > length-f.binary || binary.LittleEndian.Uint32(head[4:]) != glbChunkBIN {
		return nil, fmt.Errorf("the second chunk claims %d binary bytes in a file of %d", f.binSize, length)
	}
	return f, f.measure(length, size)
}

// measure finds the end of the last chunk: files may have chunks that only other programs know.
func (f *glbFile) measure(length, size int64) error {
	at := f.binary + f.binSize
	var head [glbChunk]byte
	for length-at >= glbChunk {
		if _, err := f.r.ReadAt(head[:], at); err != nil {
			return err
		}
		chunk := glbChunk + int64(binary.LittleEndian.Uint32(head[:]))
		if chunk > length-at {
			break
		}
		at += chunk
	}
	f.surplus = size - at
	const padding = 3 // bytes at most, behind the buffer in its chunk
	if b := f.root.Buffers; len(b) > 0 && b[0].URI == "" && f.binSize-b[0].ByteLength > padding {
		f.surplus += f.binSize - b[0].ByteLength
	}
	return nil
}

func (f *glbFile) view(id int) (at int64, v gltfBufferView, err error) {
	if id < 0 || id >= len(f.root.BufferViews) {
		return 0, v, fmt.Errorf("there is no buffer view %d", id)
	}
	v = f.root.BufferViews[id]
	if v.Buffer < 0 || v.Buffer >= len(f.root.Buffers) {
		return 0, v, fmt.Errorf("buffer view %d: there is no buffer %d", id, v.Buffer)
	}
	if v.Buffer != 0 || f.root.Buffers[0].URI != "" {
		return 0, v, &fault.Error{Op: opReadGLB, Err: fmt.Errorf("buffer %d is not in the file", v.Buffer),
			Hint: "export it with all buffers inside"}
	}
	if v.ByteOffset < 0 || v.ByteLength < 0 || v.ByteOffset > f.binSize || v.ByteLength > f.binSize-v.ByteOffset {
		return 0, v, fmt.Errorf("buffer view %d claims %d bytes from %d on, of %d", id, v.ByteLength, v.ByteOffset,
			f.binSize)
	}
	return f.binary + v.ByteOffset, v, nil
}
