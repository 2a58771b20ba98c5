package main

import (
	"path/filepath"
	"strings"
)

// overwriteOption lets a command replace the file that it writes.
func overwriteOption(p *bool, what string) option {
	return truth(p, "overwrite", "replace "+what+" where it is there already")
}

// pictureFormats are those of single pictures, by the ends of their names.
var pictureFormats = map[string]string{".png": "png", ".jpg": "jpg", ".jpeg": "jpg", ".exr": "exr", ".npy": "npy"}

// pictureFormat is the format that a file's name says, "" for none.
func pictureFormat(path string) string { return pictureFormats[strings.ToLower(filepath.Ext(path))] }
