package usd

import (
	"archive/zip"
	"hash/crc32"
	"io"
)

// packageAlign is where the content of a file in a package begins: at a multiple of it.
const packageAlign = 64

// WritePackage writes a package: an archive with the binary form as its one file, not compressed, at a place where it
// can be mapped into memory. The layer is written twice: its checksum stands before it.
func WritePackage(to io.Writer, l *Layer, name string) error {
	sum := crc32.NewIEEE()
	if err := WriteCrate(sum, l); err != nil {
		return err
	}
	size := uint64(CrateSize(l))
	head := &zip.FileHeader{Name: name, Method: zip.Store, CRC32: sum.Sum32(), CompressedSize64: size,
		UncompressedSize64: size, ReaderVersion: 20}
	const local = 30 // bytes of a file's head before its name
	if pad := -(local + len(name)) & (packageAlign - 1); pad > 0 {
		if pad < 4 {
			pad += packageAlign
		}
		// an extra field of an unassigned kind, as USD's own writer has it
		head.Extra = append([]byte{0x86, 0x19, byte(pad - 4), 0}, make([]byte, pad-4)...)
	}
	archive := zip.NewWriter(to)
	w, err := archive.CreateRaw(head)
	if err != nil {
		return err
	}
	if err := WriteCrate(w, l); err != nil {
		return err
	}
	return archive.Close()
}
