package safetensors

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"os"
	"slices"
	"sync"

	"vksplat/internal/atomicfile"
)

type TensorData struct {
	TensorInfo
	// Write writes the numbers, little endian: exactly as many as the shape says. It is called once, in the order of
	// the file, so that a tensor need never be in memory as a whole.
	Write func(w io.Writer) error
}

// Write replaces path, as atomicfile.Write does, by a file of the given tensors, in this order, and metadata. The file
// carries its own SHA-256 (see Safetensors.Verify). Equal arguments make equal bytes.
func Write(path string, metadata map[string]string, tensors []TensorData) error {
	if err := atomicfile.ReplaceWhole(path,
		func(f *os.File) error { return encodeSafetensors(f, metadata, tensors) }); err != nil {
		return atomicfile.WriteError("write", path, err)
	}
	return nil
}

// Size returns the bytes of the file that Write would write.
func Size(metadata map[string]string, tensors []TensorInfo) (int64, error) {
	header, _, err := encodeHeader(metadata, tensors)
	if err != nil {
		return 0, fmt.Errorf("size of safetensors: %w", err)
	}
	size := int64(lengthBytes + len(header))
	for _, t := range tensors {
		n, err := t.Bytes()
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// randomWriter is a file that is written from its start on and mended at the end.
type randomWriter interface {
	io.Writer
	io.WriterAt
}

func encodeSafetensors(f randomWriter, metadata map[string]string, tensors []TensorData) error {
	infos := make([]TensorInfo, len(tensors))
	for i := range tensors {
		infos[i] = tensors[i].TensorInfo
	}
	header, digitsAt, err := encodeHeader(metadata, infos)
	if err != nil {
		return err
	}
	sum := sha256.New()
	w := bufio.NewWriterSize(&hashingWriter{w: f, hash: sum}, atomicfile.WriteBuffer)
	length := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	if _, err := w.Write(slices.Concat(length, header)); err != nil {
		return err
	}
	for i := range tensors {
		want, err := infos[i].Bytes()
		if err != nil {
			return err
		}
		limited := &exactWriter{w: w, left: want}
		if want > 0 {
			if err := tensors[i].Write(limited); err != nil {
				return err
			}
		}
		if limited.left != 0 {
			return fmt.Errorf("tensor %q: %d of %d bytes are missing", infos[i].Name, limited.left, want)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err = f.WriteAt(hex.AppendEncode(nil, sum.Sum(nil)), int64(lengthBytes+digitsAt))
	return err
}

// hashingWriter writes and hashes at the same time: with fast disks either alone takes about as long.
type hashingWriter struct {
	w    io.Writer
	hash hash.Hash
}

func (h *hashingWriter) Write(p []byte) (int, error) {
	var hashed sync.WaitGroup
	hashed.Go(func() { h.hash.Write(p) })
	n, err := h.w.Write(p)
	hashed.Wait()
	return n, err
}

// exactWriter refuses more bytes than a tensor has.
type exactWriter struct {
	w    io.Writer
	left int64
}

func (e *exactWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > e.left {
		return 0, fmt.Errorf("%d bytes more than the tensor has", int64(len(p))-e.left)
	}
	n, err := e.w.Write(p)
	e.left -= int64(n)
	return n, err
}
