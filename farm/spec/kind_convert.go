package spec

import (
	"path/filepath"
	"strings"
)

// KindConvert writes a model in another format.
var KindConvert = &Kind{
	Name:  "convert",
	About: "convert a model to another format",
	fields: keys("convert", plain("model", typeInput, "the model").need(), option("convert", "to").need(), "sh_degree",
		"max_splats", "decimate", "lod", "min_opacity", "crop", "sphere"),
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
