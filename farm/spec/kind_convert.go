package spec

import (
	"path/filepath"
	"strings"
)

// KindConvert writes a model in another format.
var KindConvert = &Kind{
	Name:  "convert",
	About: "convert a model to another format",
	fields: []field{
		plain("model", typeInput, "the model").need(),
		oneOf("to", "format", "ply", "compressed-ply", "splat", "spz", "glb", "sog", streamedSOG, tiles3D,
			"usd").need().to("to"),
		number("sh_degree", typeInt, 0, 3, "drop spherical harmonics above this degree").to("sh-degree"),
		number("max_splats", typeInt, 1, 1e10, "keep the most important").to("max-splats"),
		number("decimate", typeInt, 1, 1e10, "merge similar splats until this many are left").to("decimate"),
		number("lod", typeInt, 1, 12, "levels of detail of "+streamedSOG).to("lod"),
		number("min_opacity", typeFloat, 0, 1, "drop splats below this opacity").to("min-opacity"),
		number("crop", typeFloats, -1e12, 1e12,
			"keep splats in the box: three minima, three maxima").times(6).to("crop"),
		number("sphere", typeFloats, -1e12, 1e12,
			"keep splats in the sphere: its middle and radius").times(4).to("sphere"),
	},
	Makes:   "a model",
	Silent:  true,
	File:    convertedFile,
	Command: "convert",
	Args: func(c *Call) []string {
		return append(c.Flags(), "--", c.Model, filepath.Join(c.Output, convertedFile(c.Task)))
	},
}

// Formats of several files, of which one names the others.
const (
	streamedSOG = "streamed-sog"
	tiles3D     = "3d-tiles"
)

// convertedFile is the name of what convert writes: model.spz, or model.compressed.ply of compressed-ply.
func convertedFile(t *Task) string {
	switch to := t.Flag("to"); to {
	case streamedSOG:
		return "lod-meta.json"
	case tiles3D:
		return "tileset.json"
	default:
		return "model." + strings.ReplaceAll(to, "-", ".")
	}
}
