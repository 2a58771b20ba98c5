package splatfile

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
)

// spzAxesOfGLTF is what ownExtras.SPZAxes says where SPZ within glTF has glTF's axes.
const spzAxesOfGLTF = "gltf"

// writeGLBPacked writes binary glTF whose splats are packed as SPZ (KHR_gaussian_splatting_compression_spz_2, which is
// not ratified), and says what was cut. Drafts of the extension have readers turn SPZ's axes to glTF's; CesiumJS, for
// which these files are, takes coordinates as they are, so that they are glTF's.
func writeGLBPacked(path string, model Source, o WriteOptions) (s spzPacked, err error) {
	info := model.Info()
	turned := &changed{model, info, func(piece *scene.Splats) *scene.Splats {
		// to where the writer's own turn makes glTF's axes of it
		flip(piece, glbFrame[0]*spzFrame[0], glbFrame[1]*spzFrame[1], glbFrame[2]*spzFrame[2])
		return piece
	}}
	if s, err = packSPZFile(path, turned, o); err != nil {
		return s, err
	}
	defer func() { _ = s.planes.close() }() // what it held is written, or has failed
	var packed bytes.Buffer
	if err := s.write(&packed); err != nil {
		return s, err
	}
	size := packed.Len()
	for packed.Len()%4 != 0 {
		packed.WriteByte(0)
	}
	if packed.Len() > math.MaxUint32-(1<<20) {
		return s, refusal("write smaller tiles", "binary glTF ends at 4 GiB")
	}
	positions := emptyBox()
	err = eachPiece(model, func(_ int, piece *scene.Splats) error {
		flip(piece, glbFrame[0], glbFrame[1], glbFrame[2])
		positions.add(piece.Means)
		return nil
	})
	if err != nil {
		return s, err
	}
	text, err := json.Marshal(glbPackedJSON(info, size, packed.Len(), positions))
	if err != nil {
		return s, err
	}
	text = append(text, strings.Repeat(" ", -len(text)&3)...)
	if err := atomicfile.WriteText(path, append(glbHead(text, int64(packed.Len())), packed.Bytes()...)); err != nil {
		return s, err
	}
	return s, nil
}

// glbPackedAttributes are what readers unpack from SPZ, in CesiumJS's reading: opacity is that of COLOR_0, and
// harmonics begin at degree 1.
func glbPackedAttributes(degree int) []glbAttribute {
	all := []glbAttribute{
		{glbPosition, "VEC3", false}, {glbRotation, "VEC4", false}, {glbScale, "VEC3", false}, {glbColor, "VEC4", true},
	}
	for k := 1; k < scene.SHCoefficients(degree); k++ {
		all = append(all, glbAttribute{glbSH(k), "VEC3", false})
	}
	return all
}

// glbPackedJSON describes a file whose only buffer view has the bytes of SPZ.
func glbPackedJSON(info Info, size, padded int, positions box) gltfRoot {
	root, splats := glbFrameOf(info, glbPackedAttributes(info.Degree), int64(padded), positions)
	splats.Extensions = &gltfSplatsSPZ{SPZ: &gltfSPZ{BufferView: 0}}
	root.BufferViews = []gltfBufferView{{ByteLength: int64(size)}}
	root.ExtensionsUsed = glbPackedExtensions
	root.ExtensionsRequired = glbPackedExtensions
	if root.Asset.Extras == nil {
		root.Asset.Extras = &extras{&ownExtras{}}
	}
	root.Asset.Extras.Own.SPZAxes = spzAxesOfGLTF
	return root
}

var glbPackedExtensions = []string{glbSplats, glbSplatsSPZ}
