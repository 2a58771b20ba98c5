package capture

import (
	"bufio"
	"encoding/gob"
	"errors"
	"hash/crc32"
	"io"
	"os"

	"vksplat/internal/atomicfile"
)

// errDamaged says that a file is not what was stored.
var errDamaged = errors.New("the file is damaged")

// sumBytes end a stored file: the checksum of what is before them.
const sumBytes = crc32.Size

// store writes what a stage made, one after the other: gob holds each in memory twice.
func store[T any](path string, list []T) error {
	return atomicfile.Write(path, func(f io.Writer) error {
		sum := crc32.NewIEEE()
		to := gob.NewEncoder(io.MultiWriter(f, sum))
		err := to.Encode(len(list))
		for i := range list {
			if err == nil {
				err = to.Encode(&list[i])
			}
		}
		if err != nil {
			return err
		}
		_, err = f.Write(sum.Sum(nil))
		return err
	})
}

// stored reads what store wrote.
func stored[T any](path string) ([]T, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, f, info.Size()-sumBytes); err != nil {
		return nil, err
	}
	written, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	if string(written) != string(sum.Sum(nil)) {
		return nil, errDamaged
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	from, n := gob.NewDecoder(bufio.NewReader(f)), 0
	if err := from.Decode(&n); err != nil {
		return nil, err
	}
	var list []T
	for range n {
		var one T
		if err := from.Decode(&one); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// reuse reads what an earlier call of the command stored, or has it made once more where that cannot be read.
func reuse[T any](w *own, name string, what *[]T, remake func() error) (err error) {
	if *what, err = stored[T](w.o.in(name)); err == nil {
		return nil
	}
	w.console.Note(w.o.in(name) + " is made again: " + err.Error())
	return errors.Join(w.stages.written.Begin(w.o.in(name)), remake())
}
