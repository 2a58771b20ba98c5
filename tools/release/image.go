package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

// The container image is Debian with the Vulkan loader, Mesa's drivers for AMD, Intel and the CPU, what NVIDIA's
// driver wants of a system (its own files come from the host), COLMAP and ffmpeg.
const suite = "trixie"

var imagePackages = []string{"ca-certificates", "colmap", "ffmpeg", "libegl1", "libvulkan1", "libxext6",
	"mesa-vulkan-drivers"}

// imageEnv lets NVIDIA's container runtime bring its Vulkan driver: without "graphics" it brings CUDA alone. The home
// folder is one that any user may write to.
var imageEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "NVIDIA_VISIBLE_DEVICES=all",
	"NVIDIA_DRIVER_CAPABILITIES=compute,graphics,utility", "QT_QPA_PLATFORM=offscreen", "HOME=/tmp"}

const (
	mediaLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	mediaConfig   = "application/vnd.oci.image.config.v1+json"
	mediaManifest = "application/vnd.oci.image.manifest.v1+json"
	mediaIndex    = "application/vnd.oci.image.index.v1+json"
)

// descriptor names a blob of an image, by the OCI image specification 1.0.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    *platform         `json:"platform,omitempty"`
}

type platform struct {
	Architecture string `json:"architecture"`
	OS           string `json:"os"`
}

// layer is a compressed tar archive in a file.
type layer struct {
	path    string
	blob    descriptor
	diff    string // SHA-256 of the archive
	history string // how it was made
}

// image makes the container image for linux/amd64, and its bill of materials.
func (m *maker) image() error {
	started := time.Now()
	root := filepath.Join(m.work, "root.tar")
	if err := makeRoot(root, m.stamp.time); err != nil {
		return err
	}
	fmt.Printf("  %-48s %17.0f s\n", "root of the image", time.Since(started).Seconds())
	return m.imageOn(root)
}

func (m *maker) imageOn(root string) error {
	packages, err := installedIn(root)
	if err != nil {
		return err
	}
	base, err := makeLayer(filepath.Join(m.work, "base"), "Debian "+suite+", by mmdebstrap", func(w writer) error {
		f, err := os.Open(root)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, f)
		return errors.Join(err, f.Close())
	})
	if err != nil {
		return err
	}
	p := m.own()
	own, err := makeLayer(filepath.Join(m.work, "own"), "vksplat "+m.stamp.version, func(w writer) error {
		files, err := debianFiles(unixFiles(m.common[p.name], p), p.component)
		if err != nil {
			return err
		}
		return writeTar(w, files, ".", m.stamp.time)
	})
	if err != nil {
		return err
	}
	name := "vksplat-" + m.stamp.version + "-image-amd64"
	return errors.Join(m.write(name+".oci.tar", func(w *counted) error {
		return writeImage(w, []layer{base, own}, m.stamp)
	}), m.write(name+".cdx.json", func(w *counted) error { return writeJSON(w, imageBill(m.stamp, p, packages)) }))
}

// makeRoot has mmdebstrap make the archive of a Debian system whose files have that time at the latest.
func makeRoot(path string, at time.Time) error {
	cmd := exec.Command("mmdebstrap", "--quiet", "--variant=apt", "--aptopt=APT::Install-Recommends false",
		"--dpkgopt=path-exclude=/usr/share/man/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
		"--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-include=/usr/share/doc/*/copyright",
		"--include="+strings.Join(imagePackages, ","),
		// what differs from run to run, and no program needs
		`--customize-hook=rm -rf "$1"/var/cache/ldconfig "$1"/var/log "$1"/etc/machine-id; mkdir "$1"/var/log "$1"/work`,
		suite, path)
	cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", at.Unix()))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("make a root of Debian %s by mmdebstrap: %w", suite, err)
	}
	return nil
}

// installedIn reads dpkg's list of what a root holds.
func installedIn(root string) (list []debianPackage, err error) {
	f, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	t := tar.NewReader(f)
	for {
		h, err := t.Next()
		if err != nil {
			return nil, fmt.Errorf("read dpkg's list of %s: %w", root, err)
		}
		if strings.TrimPrefix(h.Name, "./") == "var/lib/dpkg/status" {
			text, err := io.ReadAll(t)
			return packagesOf(string(text)), err
		}
	}
}

// makeLayer compresses an archive into a file.
func makeLayer(path, history string, write func(w writer) error) (layer, error) {
	f, err := os.Create(path)
	if err != nil {
		return layer{}, err
	}
	packed := newCounted(f)
	z := gzip.NewWriter(packed)
	plain := newCounted(z)
	if err := errors.Join(write(plain), z.Close(), f.Close()); err != nil {
		return layer{}, fmt.Errorf("write layer %s: %w", filepath.Base(path), err)
	}
	return layer{path, descriptor{MediaType: mediaLayer, Digest: "sha256:" + packed.digest(), Size: packed.n},
		"sha256:" + plain.digest(), history}, nil
}

// imageConfig configures the containers of an image.
type imageConfig struct {
	Created      time.Time `json:"created"`
	Architecture string    `json:"architecture"`
	OS           string    `json:"os"`
	Config       struct {
		Env        []string          `json:"Env"`
		Entrypoint []string          `json:"Entrypoint"`
		Cmd        []string          `json:"Cmd"`
		WorkingDir string            `json:"WorkingDir"`
		Labels     map[string]string `json:"Labels"`
	} `json:"config"`
	RootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	} `json:"rootfs"`
	History []imageHistory `json:"history"`
}

type imageHistory struct {
	Created   time.Time `json:"created"`
	CreatedBy string    `json:"created_by"`
}

func configOf(layers []layer, of stamp) *imageConfig {
	c := &imageConfig{Created: of.time, Architecture: "amd64", OS: "linux"}
	c.Config.Env, c.Config.Entrypoint, c.Config.Cmd = imageEnv, []string{"vksplat"}, []string{"--help"}
	c.Config.WorkingDir = "/work"
	c.Config.Labels = map[string]string{"org.opencontainers.image.title": "vksplat",
		"org.opencontainers.image.version": of.version, "org.opencontainers.image.revision": of.commit,
		"org.opencontainers.image.licenses": "Apache-2.0"}
	c.RootFS.Type = "layers"
	for _, l := range layers {
		c.RootFS.DiffIDs = append(c.RootFS.DiffIDs, l.diff)
		c.History = append(c.History, imageHistory{of.time, l.history})
	}
	return c
}

// tagOf is the version as a tag, which has no plus sign.
func tagOf(of stamp) string { return strings.ReplaceAll(of.version, "+", "-") }

// writeImage writes an OCI image layout as a tar archive, as docker load, podman load and skopeo read it.
func writeImage(w io.Writer, layers []layer, of stamp) error {
	small := map[string][]byte{}
	put := func(media string, v any) (descriptor, error) {
		data, err := json.Marshal(v)
		c := newCounted(io.Discard)
		_, _ = c.Write(data)
		small["blobs/sha256/"+c.digest()] = data
		return descriptor{MediaType: media, Digest: "sha256:" + c.digest(), Size: c.n}, err
	}
	config, err := put(mediaConfig, configOf(layers, of))
	if err != nil {
		return err
	}
	var blobs []descriptor
	for _, l := range layers {
		blobs = append(blobs, l.blob)
	}
	manifest, err := put(mediaManifest, map[string]any{"schemaVersion": 2, "mediaType": mediaManifest,
		"config": config, "layers": blobs})
	if err != nil {
		return err
	}
	manifest.Platform = &platform{"amd64", "linux"}
	manifest.Annotations = map[string]string{"org.opencontainers.image.ref.name": tagOf(of),
		"io.containerd.image.name": "docker.io/library/vksplat:" + tagOf(of)}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": mediaIndex,
		"manifests": []descriptor{manifest}})
	if err != nil {
		return err
	}
	small["oci-layout"], small["index.json"] = []byte(`{"imageLayoutVersion":"1.0.0"}`), index
	return writeLayout(w, small, layers, of.time)
}

// writeLayout writes the small files of an image, then its layers.
func writeLayout(w io.Writer, small map[string][]byte, layers []layer, at time.Time) error {
	t := tar.NewWriter(w)
	put := func(name string, size int64, data io.Reader) error {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: size, ModTime: at}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err := io.Copy(t, data)
		return err
	}
	var names []string
	for name := range small {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if err := put(name, int64(len(small[name])), bytes.NewReader(small[name])); err != nil {
			return err
		}
	}
	for _, l := range layers {
		f, err := os.Open(l.path)
		if err != nil {
			return err
		}
		err = put("blobs/sha256/"+strings.TrimPrefix(l.blob.Digest, "sha256:"), l.blob.Size, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return t.Close()
}
