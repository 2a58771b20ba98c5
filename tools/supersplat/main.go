// Command supersplat brings the web viewer that package view embeds: it fetches the pinned release of
// @playcanvas/supersplat-viewer through npm, checks that it is the very archive whose hash stands below, and writes
// what is embedded to view/supersplat: scripts and styles compressed, with the SHA-256 of each file's content. Run it
// at the root of the repository: go run ./tools/supersplat
//
// For another release: change version and integrity, the latter to what `npm view @playcanvas/supersplat-viewer@VERSION
// dist.integrity` prints, run it, and look at the viewer: view/page/boot.js says what it relies on.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

const (
	packageName = "@playcanvas/supersplat-viewer"
	version     = "1.36.2"
	integrity   = "sha512-L7w0BlagAonRHQg5qhaDyBB8zrRtiU9QgglNU3kUgsqHpokCAtuf9j4P0kxsUaQn61FZ1qJGkRKsOCbrLCDR0w=="
	folder      = "view/supersplat"
)

// wanted are the files of the archive, by the names that they get, in the order of the list of hashes. Those that end
// in .gz are compressed.
var wanted = [][2]string{
	{"package/LICENSE", "LICENSE"},
	{"package/public/index.css", "index.css.gz"},
	{"package/public/index.js", "index.js.gz"},
}

// maxArchive and maxFile bound what is read of an archive, in bytes.
const (
	maxArchive = 32 << 20
	maxFile    = 16 << 20
)

func main() {
	if err := refresh(); err != nil {
		fmt.Fprintln(os.Stderr, "supersplat:", err)
		os.Exit(1)
	}
}

// refresh fetches, checks and writes everything.
func refresh() error {
	archive, err := fetch()
	if err != nil {
		return err
	}
	files, err := unpack(archive)
	if err != nil {
		return err
	}
	sums := new(bytes.Buffer)
	for _, w := range wanted {
		data := files[w[0]]
		fmt.Fprintf(sums, "%x  %s\n", sha256.Sum256(data), w[1])
		if filepath.Ext(w[1]) == ".gz" {
			if data, err = compressed(data); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, w[1]), data, 0o666); err != nil {
			return err
		}
	}
	fmt.Printf("%s %s: %s\n%s", packageName, version, folder, sums)
	if err := os.WriteFile(filepath.Join(folder, "VERSION"), []byte(version+"\n"), 0o666); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "SHA256SUMS"), sums.Bytes(), 0o666)
}

func fetch() (archive []byte, err error) {
	dir, err := os.MkdirTemp("", "supersplat")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	npm := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, packageName+"@"+version)
	npm.Stderr = os.Stderr
	if err := npm.Run(); err != nil {
		return nil, fmt.Errorf("npm pack: %w", err)
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(names) != 1 {
		return nil, fmt.Errorf("npm pack wrote %d archives: %w", len(names), err)
	}
	f, err := os.Open(names[0])
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	if archive, err = io.ReadAll(io.LimitReader(f, maxArchive)); err != nil {
		return nil, err
	}
	return archive, check(archive)
}

// check compares an archive with the pinned hash.
func check(archive []byte) error {
	sum := sha512.Sum512(archive)
	if got := "sha512-" + base64.StdEncoding.EncodeToString(sum[:]); got != integrity {
		return fmt.Errorf("%s %s is not the pinned archive: %s, pinned is %s", packageName, version, got, integrity)
	}
	return nil
}

// unpack returns the wanted files of an archive.
func unpack(archive []byte) (map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		for _, w := range wanted {
			if h.Name == w[0] {
				if files[w[0]], err = io.ReadAll(io.LimitReader(r, maxFile)); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, w := range wanted {
		if len(files[w[0]]) == 0 {
			return nil, fmt.Errorf("the archive holds no %s", w[0])
		}
	}
	return files, nil
}

// compressed is the gzip form of data, without a name or a time.
func compressed(data []byte) ([]byte, error) {
	out := new(bytes.Buffer)
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	err = z.Close()
	return out.Bytes(), err
}
