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

// store writes what a stage made.
func store(path string, what any) error {
	return atomicfile.Write(path, func(f io.Writer) error {
		sum := crc32.NewIEEE()
		if err := gob.NewEncoder(io.MultiWriter(f, sum)).Encode(what); err != nil {
			return err
		}
		_, err := f.Write(sum.Sum(nil))
		return err
	})
}

// stored reads what store wrote.
func stored[T any](path string) (what T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return what, err
	}
	defer f.Close() // only read from
	info, err := f.Stat()
	if err != nil {
		return what, err
	}
	sum := crc32.NewIEEE()
	if _, err := io.CopyN(sum, f, info.Size()-sumBytes); err != nil {
		return what, err
	}
	written, err := io.ReadAll(f)
	if err != nil {
		return what, err
	}
	if string(written) != string(sum.Sum(nil)) {
		return what, errDamaged
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return what, err
	}
	err = gob.NewDecoder(bufio.NewReader(f)).Decode(&what)
	return what, err
}

// reuse reads what an earlier call of the command stored, or has it made once more where that cannot be read.
func reuse[T any](w *own, name string, what *T, remake func() error) (err error) {
	if *what, err = stored[T](w.o.in(name)); err == nil {
		return nil
	}
	w.console.Note(w.o.in(name) + " is made again: " + err.Error())
	return remake()
}
