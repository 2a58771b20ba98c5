package scene

import (
	"bytes"
	"encoding/binary"
	"os"
)

// PhotoOrientation returns the orientation that a JPEG's EXIF block asks for, 1 to 8; 1 if it has none.
func PhotoOrientation(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, trimPath(err)
	}
	at := bytes.Index(data[:min(len(data), 1<<16)], []byte("Exif\x00\x00"))
	if at < 0 || len(data) < at+14 {
		return 1, nil
	}
	tiff := data[at+6:]
	var order binary.ByteOrder = binary.LittleEndian
	if tiff[0] == 'M' {
		order = binary.BigEndian
	}
	first := uint64(order.Uint32(tiff[4:]))
	if first+2 > uint64(len(tiff)) {
		return 1, nil
	}
	entries := tiff[first+2:]
	for i := range int(order.Uint16(tiff[first:])) {
		if len(entries) < 12*i+12 {
			break
		}
		if e := entries[12*i:]; order.Uint16(e) == 0x112 {
			return int(order.Uint16(e[8:])), nil
		}
	}
	return 1, nil
}

// foreignHint says what to do about a file of a kind that is not read; "" where nothing is known.
func foreignHint(string, error) string { return "" }
