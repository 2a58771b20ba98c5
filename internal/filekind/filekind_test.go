package filekind_test

import (
	"strings"
	"testing"

	"vksplat/internal/filekind"
)

func TestOf(t *testing.T) {
	for _, c := range []struct{ path, head, kind, hint string }{
		{"m.ply", "\x1f\x8b\x08\x00", "gzip", "gzip -dc"},
		{"m.ply", "BZh91AY", "bzip2", "bzip2 -dc"},
		{"m.ply", "\xfd7zXZ\x00\x00", "xz", "xz -dc"},
		{"m.ply", "\x28\xb5\x2f\xfd\x04", "zstd", "zstd -dc"},
		{"m.ply", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n", "Git LFS", "git lfs pull"},
		{"m.ply", "<!DOCTYPE html>", "web page", "download"},
		{"m.ply", "\xff\xd8\xff\xe0", "photo", ""},
		{"m.ply", "RIFF\x00\x00\x00\x00WEBPVP8L", "photo", ""},
		{"m.gltf", `{"buffers":[{"uri":"data:`, "glTF in JSON", ".glb"},
		{"m", "\n{ \"asset\": {\"version\": \"2.0\"}, \"meshes\": [", "glTF in JSON", ".glb"},
		{"meta.json", `{"version":2,"asset":{"generator":"x"},"count":1,"means":{`, "", ""},
		{"m.ply", "ply\nformat ascii 1.0\n", "", ""},
		{"m.ply", "", "", ""},
	} {
		kind, hint := filekind.Of(c.path, []byte(c.head))
		if !strings.Contains(kind, c.kind) || !strings.Contains(hint, c.hint) || (kind == "") != (c.kind == "") {
			t.Errorf("%s with %q is %q, hint %q; %q and %q are expected", c.path, c.head, kind, hint, c.kind, c.hint)
		}
	}
}
