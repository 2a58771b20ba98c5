package fault

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"

	"vksplat/internal/wording"
)

// MaxTempBase is how much of a file's name its temporary file carries, in bytes:
// names end at 255 and the temporary one is longer.
const MaxTempBase = 200

var tempName = regexp.MustCompile(`(?s)^\.(.+)\.tmp\d+$`)

// TempOf returns the name, cut to MaxTempBase bytes, of the file that atomicfile.Write was making when a process was
// killed and left the file name behind, and whether it was cut; "" for what has another kind of name.
func TempOf(name string) (base string, cut bool) {
	m := tempName.FindStringSubmatch(name)
	if m == nil {
		return "", false
	}
	return m[1], len(m[1]) == MaxTempBase
}

// TrimPath drops the name of the temporary file from an error of package os:
// it says nothing to the user, and Error names the file that was meant.
func TrimPath(err error) error {
	if link, ok := errors.AsType[*os.LinkError](err); ok { // of a temporary file that could not be renamed
		return link.Err
	}
	var pathError *os.PathError
	if !errors.As(err, &pathError) {
		return err
	}
	if base, _ := TempOf(filepath.Base(pathError.Path)); base != "" || error(pathError) == err {
		return pathError.Err
	}
	return err
}

// ErrNotRegular is the error of a folder, pipe, socket or device in a file's place.
var ErrNotRegular = errors.New("not a file")

// Regular reports what keeps path from being read as a file. To ask after opening
// is too late: a pipe without a writer blocks there.
func Regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	return TrimPath(err)
}

// Open opens a file for reading that is one, and returns its size in bytes.
func Open(path string) (f *os.File, size int64, err error) {
	if err := Regular(path); err != nil {
		return nil, 0, err
	}
	if f, err = os.Open(path); err != nil {
		return nil, 0, TrimPath(err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(TrimPath(err), f.Close())
	}
	return f, info.Size(), nil
}

// ReadFile reads what is a file, of at most so many bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read from
	if size > most {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", size, most)
	}
	data := make([]byte, size)
	_, err = io.ReadFull(f, data)
	return data, TrimPath(err)
}

// Dangling refuses a place to write to that is a symbolic link to nothing or one that cannot be followed, as in a ring
// of links, or below such a link: who set the link wants what is written where it leads.
func Dangling(path string) error {
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		_, broken := os.Stat(at)
		if broken == nil || at == filepath.Dir(at) {
			return nil
		}
		to, err := os.Readlink(at)
		if err != nil {
			continue
		}
		to = wording.Printable(to)
		if errors.Is(broken, os.ErrNotExist) {
			return &Error{Op: "write output", Path: at, Kind: ErrTryAgain,
				Err:  fmt.Errorf("it is a symbolic link to %s, which does not exist", to),
				Hint: "create its target, for example by mounting its disk, or remove the link"}
		}
		return &Error{Op: "write output", Path: at, Kind: ErrUsage,
			Err:  fmt.Errorf("it is a symbolic link to %s, which cannot be followed: %w", to, Pathless(broken)),
			Hint: "remove the link, or choose another name"}
	}
}

// ReadKind tells files that cannot be opened now from files that are not there.
func ReadKind(err error) error {
	if errors.Is(err, os.ErrPermission) {
		return ErrTryAgain
	}
	return ErrData
}

// Pathless strips the path, which the message around it names already.
func Pathless(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
