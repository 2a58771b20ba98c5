package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// SQLite's write-ahead log, as https://www.sqlite.org/fileformat2.html#walformat has it. After a crash SQLite takes the
// log to end where a checksum is wrong, and says nothing: one flipped bit takes everything back that was accepted after
// it. So the server reads the log first.
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682 // the lowest bit says how numbers are summed up
	walVersion  = 3007000
)

// walLog is what a log holds.
type walLog struct {
	frames int // whole ones up to the last commit, which SQLite will read
	lost   int // commits that follow the first frame that is not whole
}

// walSum continues a checksum over data.
func walSum(order binary.ByteOrder, sum [2]uint32, data []byte) [2]uint32 {
	for ; len(data) >= 8; data = data[8:] {
		sum[0] += order.Uint32(data) + sum[1]
		sum[1] += order.Uint32(data[4:]) + sum[0]
	}
	return sum
}

// walSumOf is a checksum as it is written.
func walSumOf(data []byte) [2]uint32 {
	return [2]uint32{binary.BigEndian.Uint32(data), binary.BigEndian.Uint32(data[4:])}
}

// readLog reads a log, which may be missing.
func readLog(path string) (l walLog, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	} else if err != nil {
		return l, err
	}
	defer f.Close()
	r, big := bufio.NewReaderSize(f, 1<<20), binary.BigEndian
	header := make([]byte, walHeader)
	if _, err := io.ReadFull(r, header); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return l, nil // nothing was written yet
	} else if err != nil {
		return l, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	if big.Uint32(header)&1 != 0 {
		order = big
	}
	page, sum := big.Uint32(header[8:]), walSum(order, [2]uint32{}, header[:24])
	if big.Uint32(header)&^1 != walMagic || big.Uint32(header[4:]) != walVersion || sum != walSumOf(header[24:]) ||
		page < 512 || page > 1<<16 {
		if _, err := r.Peek(frameHeader); err != nil {
			return l, nil
		}
		return l, errors.New("the log is damaged at its beginning") // which reached the disk before what follows
	}
	whole := true
	frame := make([]byte, frameHeader+page)
	for n := 1; ; n++ {
		if _, err := io.ReadFull(r, frame); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return l, nil
		} else if err != nil {
			return l, err
		}
		own := string(frame[8:16]) == string(header[16:24]) // else of an earlier use of the file
		sum = walSum(order, walSum(order, sum, frame[:8]), frame[frameHeader:])
		whole = whole && own && sum == walSumOf(frame[16:])
		switch commits := big.Uint32(frame[4:]) != 0; {
		case whole && commits:
			l.frames = n
		case !whole && own && commits:
			l.lost++
		}
	}
}

// check refuses a log that has lost what was accepted. Of the last commit that cannot be told: it may have been under
// way when the power failed, before anybody was told of it.
func (l walLog) check() error {
	if l.lost > 1 {
		return fmt.Errorf("the log is damaged at frame %d: %d commits after it would be lost", l.frames+1, l.lost)
	}
	return nil
}
