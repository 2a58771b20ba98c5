package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os/user"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vksplat/internal/fault"
)

// Root stores files by key: a folder, or a bucket of an object store. Keys have slashes between their parts and never
// lead out of the root.
type Root interface {
	// Open opens a file for reading.
	Open(key string) (io.ReadCloser, error)
	// Put writes a file, whole or not at all, and replaces an existing one. It is on the disk when Put returns. Write
	// may be called again.
	Put(key string, write func(io.Writer) error) error
	// Claim creates an empty file. An existing one is left alone, and the error is ErrExists.
	Claim(key string) error
	// List returns the files at and below a key, sorted by key, without hidden ones. Odd names what is there and cannot
	// be read as a file: pipes, names that some systems refuse, and links that leave the root or form a cycle.
	List(key string) (list []Entry, odd []string, err error)
	// Names returns the names directly below a key, without hidden ones: also of folders in which no file is whole yet.
	// A file has its own name, a missing key none.
	Names(key string) ([]string, error)
	// Stat describes a file or folder.
	Stat(key string) (Entry, error)
	// Delete removes what is at and below a key, and then its parent folder if that is empty. A missing key is no
	// error.
	Delete(key string) error
	// Publish moves all files below from to below to, atomically, and removes the parent of from if that is empty then.
	// If anything is at to, nothing happens, and the error is ErrExists.
	Publish(from, to string) error
	// InPlace reports a root that cannot rename: results stay where they are uploaded, in a folder of their own among
	// the task's results, and Publish writes the manifest that names this folder.
	InPlace() bool
	// Ready checks that results of a task can be published, before work is put into them: that the server keeps two
	// attempts at a task apart.
	Ready(task string) error
	// Abort ends unfinished uploads at and below keys. It may have to list all uploads there are.
	Abort(keys ...string)
	// Attend returns this root for work that must end about ten seconds after leaving has, if the store is away: what
	// renames may finish. While it waits for the store, waits is called every second with the cause, and with nil once
	// the store answers. After a wait in vain each operation is tried once, until one succeeds.
	Attend(leaving context.Context, waits func(cause error)) Root
	// String names the root for messages.
	String() string
}

// HasAny reports whether a root holds anything. A bucket always counts; an empty folder may be the place of a share
// that is not mounted.
func HasAny(r Root) bool {
	if r.InPlace() {
		return true
	}
	names, err := r.Names(".")
	return err == nil && len(names) > 0
}

// Entry is a file, or with Folder a folder.
type Entry struct {
	Key      string
	Size     int64
	Modified time.Time
	Tag      string // the server's hash of the content, or ""
	Folder   bool
}

// Errors of a store, besides those of its files.
var (
	// ErrExists is the error of an existing file or result.
	ErrExists = errors.New("it exists already")
	// ErrSetup is the error of wrong settings of a root. Retrying does not help.
	ErrSetup = fault.Sentinel(fault.ErrSetup, "the store is not set up", "")
	// ErrDamaged is the error of files that differ from their manifest.
	ErrDamaged = errors.New("it is damaged")
)

// Options are the settings of a root.
type Options struct {
	URL   string `toml:"url"`             // file:///folder, where %20 is a space, or a folder; or s3://bucket/prefix
	Umask string `toml:"umask,omitempty"` // of a folder, octal, as in 0002; "": the process's
	Group string `toml:"group,omitempty"` // of a folder, name or number; "": the process's
	// of a folder, a file that exists only while its share is mounted; "": no check
	Mark string `toml:"mark,omitempty"`

	// Of a bucket.
	// https://host:port, or http://; "": Amazon's, or what AWS_ENDPOINT_URL says
	Endpoint string `toml:"endpoint,omitempty"`
	Region   string `toml:"region,omitempty"` // "": what AWS_REGION says, or what the server says
	// the bucket is in the path, not in the host name; nil: by the endpoint
	PathStyle *bool `toml:"path_style,omitempty"`
	// PEM file of trusted certificates; "": the system's
	CA string `toml:"ca,omitempty"`
	// file as ~/.aws/credentials, for its owner alone; "": the usual ones
	Credentials string `toml:"credentials,omitempty"`
	Profile     string `toml:"profile,omitempty"` // section of such a file; "": default
}

// IsBucket reports whether a url is of a bucket.
func IsBucket(url string) bool { return strings.HasPrefix(url, bucketScheme) }

// Open opens a root.
func Open(o Options) (Root, error) {
	if IsBucket(o.URL) {
		return openBucket(o)
	}
	if o.Endpoint+o.Region+o.CA+o.Credentials+o.Profile != "" || o.PathStyle != nil {
		return nil, setupError(o.URL, "a bucket's url is as in s3://bucket/farm",
			"endpoint, region, path_style, ca, credentials and profile apply to buckets only")
	}
	dir, err := o.Folder()
	if err != nil {
		return nil, err
	}
	if o.Mark != "" && !fs.ValidPath(o.Mark) {
		return nil, setupError(o.URL, "as in mark = \".mounted\"", "%q is not a file in it", o.Mark)
	}
	umask, gid := -1, -1
	if o.Umask != "" {
		n, err := strconv.ParseUint(o.Umask, 8, 9)
		if err != nil {
			return nil, setupError(o.URL, "as in umask = \"0002\"", "%q is not a umask", o.Umask)
		}
		umask = int(n)
	}
	if o.Group != "" {
		n, err := groupID(o.Group)
		if err != nil {
			return nil, setupError(o.URL, "name a group of this machine, by name or number", "%w", err)
		}
		gid = n
	}
	return openFolder(dir, o.Mark, umask, gid)
}

// Folder is the folder of a root that is not a bucket.
func (o Options) Folder() (string, error) {
	dir := o.URL
	if scheme, _, isURL := strings.Cut(o.URL, "://"); isURL {
		u, err := url.Parse(o.URL)
		switch {
		case err != nil:
			return "", setupError(o.URL, "give a folder that all workers see, as in file:///srv/farm", "%w", err)
		case scheme != "file":
			return "", setupError(o.URL,
				"give a folder that all workers see, as in file:///srv/farm, or s3://bucket/prefix",
				"unknown kind of root: %s://", scheme)
		case u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "":
			return "", setupError(o.URL, "three slashes follow file:, as in file:///srv/farm",
				"it names no folder of this machine")
		}
		if dir = u.Path; runtime.GOOS == "windows" { // file:///C:/farm
			dir = strings.TrimPrefix(dir, "/")
		}
	}
	if dir == "" {
		return "", setupError(o.URL, "give a folder, as in file:///srv/farm", "no folder is named")
	}
	return dir, nil
}

func groupID(group string) (int, error) {
	if n, err := strconv.Atoi(group); err == nil && n >= 0 {
		return n, nil
	}
	g, err := user.LookupGroup(group)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(g.Gid)
}

// Roots are the roots of a machine by name.
type Roots map[string]Options

// Open opens a root by name.
func (r Roots) Open(name string) (Root, error) {
	o, known := r[name]
	if !known {
		return nil, setupError(name, "add it to the file of "+fault.Setting("roots"),
			"no root of this name is configured here")
	}
	return Open(o)
}

// setupError is an error of kind ErrSetup.
func setupError(where, hint, format string, args ...any) error {
	return &fault.Error{Op: "open root", Path: where, Err: fmt.Errorf(format, args...), Hint: hint, Kind: ErrSetup}
}

// IsAway reports whether an error is of a store that is away or full, which passes.
func IsAway(err error) bool {
	return isAwayShare(err) || isAway(err) || isFullBucket(err)
}

// Explain adds a hint and a kind to an error of a store's files.
func Explain(op, path string, err error) error {
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known) && known.Kind != nil:
		return err
	case fault.IsFull(err):
		return &fault.Error{Op: op, Path: path, Err: err,
			Hint: "make room there; the task continues when it is retried", Kind: fault.ErrTryAgain}
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return &fault.Error{Op: op, Path: path, Err: err, Hint: "give write permission there, or name another root " +
			"in the file of " + fault.Setting("roots"), Kind: ErrSetup}
	case errors.Is(err, errOdd):
		return &fault.Error{Op: op, Path: path, Err: err,
			Hint: "links may lead only to places below their root: put a copy in its place, or name the folder that " +
				"holds it as the root", Kind: fault.ErrData}
	case errors.Is(err, ErrDamaged):
		return &fault.Error{Op: op, Path: path, Err: err, Hint: "run the task that makes it again", Kind: fault.ErrData}
	}
	return &fault.Error{Op: op, Path: path, Err: err, Hint: "check the disk and the network", Kind: fault.ErrTryAgain}
}
