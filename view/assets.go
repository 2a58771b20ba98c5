package view

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed supersplat page live desk
var assetFiles embed.FS

// assetTypes are the kinds of assets, by the end of their names.
var assetTypes = map[string]string{".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".html": "text/html; charset=utf-8", ".json": "application/json", ".webp": "image/webp"}

func mustAsset(path string) []byte {
	data, err := assetFiles.ReadFile(path)
	if err != nil {
		panic(err) // the names are those of this package
	}
	return data
}

// mustUnpacked returns the content of an embedded file that is compressed.
func mustUnpacked(path string) []byte {
	z, err := gzip.NewReader(bytes.NewReader(mustAsset(path)))
	if err != nil {
		panic(err) // a test reads all of them
	}
	data, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return data
}

func viewerStyle() []byte { return mustUnpacked("supersplat/index.css.gz") }

func viewerVersion() string { return strings.TrimSpace(string(mustAsset("supersplat/VERSION"))) }

// bytesHandler serves content of a kind that the end of its name tells.
func bytesHandler(name string, data []byte) http.Handler {
	sum := sha256.Sum256(data)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", assetTypes[path.Ext(name)])
		revalidated(w, tag)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	})
}

// packedHandler serves content compressed, and as it is to those who cannot unpack it.
func packedHandler(name string, data []byte) http.Handler {
	small := new(bytes.Buffer)
	z := gzip.NewWriter(small)
	_, _ = z.Write(data) // a buffer takes all
	_ = z.Close()
	plain, packed := bytesHandler(name, data), bytesHandler(name, small.Bytes())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Vary", "Accept-Encoding")
		if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") || r.Header.Get("Range") != "" {
			plain.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		packed.ServeHTTP(w, r)
	})
}

// revalidated lets a browser keep an answer, and ask each time whether it is still good.
func revalidated(w http.ResponseWriter, tag string) {
	w.Header().Set("Cache-Control", "private, no-cache")
	w.Header().Set("Etag", tag)
}
