// Package filekind names files that are not what they were opened as.
package filekind

import (
	"bytes"
	"path/filepath"
	"strings"
)

const Photo = "a photo"

const (
	unpack  = "unpack it first, as with "
	another = "a download that failed may have left it in place of the file: download it again"
)

var kinds = []struct{ magic, kind, hint string }{
	{"\x1f\x8b", "compressed with gzip", unpack + "gzip -dc FILE > UNPACKED"},
	{"BZh", "compressed with bzip2", unpack + "bzip2 -dc FILE > UNPACKED"},
	{"\xfd7zXZ\x00", "compressed with xz", unpack + "xz -dc FILE > UNPACKED"},
	{"\x28\xb5\x2f\xfd", "compressed with zstd", unpack + "zstd -dc FILE > UNPACKED"},
	{"version https://git-lfs.github.com/spec/", "a pointer of Git LFS in place of the file",
		"fetch the file with git lfs pull, in the clone that it is from"},
	{"\xff\xd8\xff", Photo, ""}, {"\x89PNG\r\n", Photo, ""}, {"II*\x00", Photo, ""}, {"MM\x00*", Photo, ""},
	{"%PDF-", "a PDF file", another}, {"<?xml", "an XML file", another},
	{"<!DOCTYPE", "a web page", another}, {"<!doctype", "a web page", another}, {"<html", "a web page", another},
}

// Of names the kind of a file that is neither a model nor a cloud of points, as in "a web page", by its first bytes and
// its name, and says what to do about it. It is "" for all other files. Gzip may pack a format that begins so.
func Of(path string, head []byte) (kind, hint string) {
	for _, k := range kinds {
		if bytes.HasPrefix(head, []byte(k.magic)) {
			return k.kind, k.hint
		}
	}
	switch {
	case len(head) > 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return Photo, ""
	case strings.EqualFold(filepath.Ext(path), ".gltf") || isGLTF(head):
		return "glTF in JSON", "export it as binary glTF, one file that ends in .glb"
	}
	return "", ""
}

// isGLTF knows glTF in JSON by words of it that begin a file.
func isGLTF(head []byte) bool {
	text := bytes.TrimSpace(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")))
	return bytes.HasPrefix(text, []byte("{")) && bytes.Contains(text, []byte(`"asset"`)) &&
		(bytes.Contains(text, []byte(`"accessors"`)) || bytes.Contains(text, []byte(`"bufferViews"`)) ||
			bytes.Contains(text, []byte(`"meshes"`)))
}
