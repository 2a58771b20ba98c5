package vk

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"vksplat/internal/fault"
)

// pipelineCache is a device's VkPipelineCache and the file that it is kept in between runs. The file is a convenience:
// one that is missing, damaged, or of another driver is ignored, and one that cannot be written is left unwritten.
//
// File: 16 bytes of magic, the SHA-256 of what follows, the driver's data. Drivers check little of what they are given,
// hence the checksum.
type pipelineCache struct {
	handle uint64
	path   string            // "" keeps nothing
	dirty  atomic.Bool       // pipelines were compiled since the file was read
	cached bool              // there were pipelines in the file
	sum    [sha256.Size]byte // of what was in the file
}

const (
	cacheMagic   = "vksplat-cache-1\n"
	cacheHeader  = len(cacheMagic) + sha256.Size
	maxCacheFile = 256 << 20 // bytes; a larger file is not ours
	driverHeader = 32        // bytes that the driver's data begins with, whatever it holds
)

func openPipelineCache(d *Device, dir string) (*pipelineCache, error) {
	c := &pipelineCache{}
	var data []byte
	if dir != "" {
		key := sha256.Sum256([]byte(d.info.identity))
		c.path = filepath.Join(dir, "pipelines-"+hex.EncodeToString(key[:8])+".bin")
		data = readCacheFile(c.path)
	}
	var r Result
	if c.handle, r = createPipelineCache(d.h, data); r < 0 && len(data) > 0 {
		data = nil
		c.handle, r = createPipelineCache(d.h, nil)
	}
	c.cached, c.sum = len(data) > driverHeader, sha256.Sum256(data)
	return c, d.check("vkCreatePipelineCache", d.info.Name, r)
}

// readCacheFile returns the driver's data of a cache file, or nil.
func readCacheFile(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || info.Size() > maxCacheFile {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil || len(data) < cacheHeader || string(data[:len(cacheMagic)]) != cacheMagic {
		return nil
	}
	sum := sha256.Sum256(data[cacheHeader:])
	if !bytes.Equal(sum[:], data[len(cacheMagic):cacheHeader]) {
		return nil
	}
	return data[cacheHeader:]
}

// close writes the file, if there is anything new for it, and ends the cache.
func (c *pipelineCache) close(d *Device) error {
	var err error
	if c.path != "" && c.dirty.Load() && !d.Lost() {
		data, r := pipelineCacheData(d.h, c.handle)
		if err = d.check("vkGetPipelineCacheData", "pipeline cache", r); err == nil && r == success &&
			sha256.Sum256(data) != c.sum {
			err = c.write(data)
		}
	}
	destroyPipelineCache(d.h, c.handle)
	return err
}

// write replaces the file in one step, so that other processes never see half of it. A folder that cannot be written to
// is no error.
func (c *pipelineCache) write(data []byte) error {
	dir := filepath.Dir(c.path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ignoreReadOnly(err)
	}
	f, err := os.CreateTemp(dir, ".pipelines-*")
	if err != nil {
		return ignoreReadOnly(err)
	}
	sum := sha256.Sum256(data)
	_, err = f.Write(append(append([]byte(cacheMagic), sum[:]...), data...))
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), c.path)
	}
	if errors.Is(err, fs.ErrPermission) { // as on Windows while another process reads the file
		return os.Remove(f.Name())
	}
	if err != nil {
		return errors.Join(fault.WithHint(&callError{Call: "write pipeline cache", Object: c.path, Err: err},
			"free some disk space, or delete the file"), os.Remove(f.Name()))
	}
	return nil
}

func ignoreReadOnly(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) ||
		errors.As(err, new(*fs.PathError)) {
		return nil
	}
	return &callError{Call: "write pipeline cache", Err: err}
}
