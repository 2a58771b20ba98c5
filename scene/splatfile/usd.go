package splatfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"vksplat/internal/atomicfile"
	"vksplat/scene"
	"vksplat/scene/usd"
)

// usdFormat is OpenUSD with the schema ParticleField3DGaussianSplat of version 26.03: positions, rotations, lengths of
// the axes, opacities between 0 and 1, and all coefficients of a splat together. It is only written.
var usdFormat = &Format{
	Name:       "usd",
	Extensions: []string{".usdc", ".usdz", ".usda", ".usd"},
	Write:      writer("write usd", writeUSD, 1),
}

// usdPackageMost is how many bytes a package can have: it is an archive without the extension for larger ones.
const usdPackageMost = math.MaxUint32 - 1<<16

// usdExtent is how many standard deviations of a splat the model's box takes in.
const usdExtent = 3

// Planes of a file that is written, as the arrays stand in it.
const (
	usdPositions = iota
	usdRotations
	usdScales
	usdOpacities
	usdHarmonics
)

func writeUSD(path string, model Source, o WriteOptions) ([]string, error) {
	info := model.Info()
	p := newPlanes(info.N, []int{12, 16, 12, 4, 12 * scene.SHCoefficients(info.Degree)}, planesInMemory,
		o.FolderFor(path))
	defer func() { _ = p.close() }() // what it held is written, or has failed
	extent, err := usdPlanes(model, p)
	if err != nil {
		return nil, err
	}
	layer, err := usdLayer(info, p, extent)
	if err != nil {
		return nil, err
	}
	ext := strings.ToLower(filepath.Ext(path))
	if ext == ".usdz" && usd.CrateSize(layer) > usdPackageMost {
		return nil, refusal("write .usdc, or fewer splats", "a package ends at 4 GiB")
	}
	err = atomicfile.Write(path, func(w io.Writer) error {
		switch ext {
		case ".usda":
			return usd.WriteText(w, layer)
		case ".usdz":
			return usd.WritePackage(w, layer, "model.usdc")
		}
		return usd.WriteCrate(w, layer)
	})
	return lostComments(info, "USD"), err
}

// usdPlanes fills the planes and gives the box around the splats.
func usdPlanes(model Source, p *planes) (extent box, err error) {
	extent = emptyBox()
	err = p.fill(model, glbFrame, func(first int, piece *scene.Splats, packed [][]byte) error { // y up, as glTF has it
		k := piece.K()
		for i := range piece.N {
			q, mean := piece.Quats[4*i:4*i+4], piece.Means[3*i:3*i+3]
			packed[usdPositions] = appendFloats(packed[usdPositions], mean...)
			packed[usdRotations] = appendFloats(packed[usdRotations], q[1], q[2], q[3], q[0])
			reach := float32(0)
			for _, x := range piece.LogScales[3*i : 3*i+3] {
				length := float32(math.Exp(float64(x)))
				if math.IsInf(float64(length), 0) {
					return unwritable(first+i, fmt.Errorf("a scale of exp(%g) is not a finite number", x))
				}
				packed[usdScales] = appendFloats(packed[usdScales], length)
				reach = max(reach, usdExtent*length)
			}
			extent.add([]float32{mean[0] - reach, mean[1] - reach, mean[2] - reach})
			extent.add([]float32{mean[0] + reach, mean[1] + reach, mean[2] + reach})
			packed[usdOpacities] = appendFloats(packed[usdOpacities], float32(sigmoid(piece.LogitOpacities[i])))
			packed[usdHarmonics] = appendFloats(packed[usdHarmonics], piece.SH[3*k*i:3*k*(i+1)]...)
		}
		return nil
	})
	return extent, err
}

// usdLayer describes a file: a transform that can be moved, and in it the splats.
func usdLayer(info Info, p *planes, extent box) (*usd.Layer, error) {
	n := int64(info.N)
	array := func(plane int, kind usd.Kind, each int) usd.Array {
		return usd.Array{N: n * int64(each), Kind: kind, Data: func() io.Reader { return p.reader(plane) }}
	}
	corners := appendFloats(nil, float32(extent.low[0]), float32(extent.low[1]), float32(extent.low[2]),
		float32(extent.high[0]), float32(extent.high[1]), float32(extent.high[2]))
	splats := usd.Prim{Name: "Splats", Type: "ParticleField3DGaussianSplat", Attributes: []usd.Attribute{
		{Name: "extent", Type: "float3[]", Value: usd.Array{N: 2, Kind: usd.Float3,
			Data: func() io.Reader { return bytes.NewReader(corners) }}},
		{Name: "positions", Type: "point3f[]", Value: array(usdPositions, usd.Float3, 1)},
		{Name: "orientations", Type: "quatf[]", Value: array(usdRotations, usd.Quat, 1)},
		{Name: "scales", Type: "float3[]", Value: array(usdScales, usd.Float3, 1)},
		{Name: "opacities", Type: "float[]", Value: array(usdOpacities, usd.Float, 1)},
		{Name: "radiance:sphericalHarmonicsDegree", Type: "int", Uniform: true, Value: usd.Int(info.Degree)},
		{Name: "radiance:sphericalHarmonicsCoefficients", Type: "float3[]",
			Value: array(usdHarmonics, usd.Float3, scene.SHCoefficients(info.Degree))},
		{Name: "projectionModeHint", Type: "token", Uniform: true, Value: usd.Token("perspective")},
		{Name: "sortingModeHint", Type: "token", Uniform: true, Value: usd.Token("cameraDistance")},
	}}
	if own := extrasOf(info.Meta, true); own != nil {
		text, err := json.Marshal(own.Own)
		if err != nil {
			return nil, err
		}
		splats.Attributes = append(splats.Attributes, usd.Attribute{Name: "userProperties:vksplat", Type: "string",
			Custom: true, Value: usd.String(text)})
	}
	return &usd.Layer{Doc: info.Meta.Generator, MetersPerUnit: 1,
		Root: usd.Prim{Name: "Model", Type: "Xform", Children: []usd.Prim{splats}}}, nil
}
