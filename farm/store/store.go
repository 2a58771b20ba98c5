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

// Root is where keys are: a folder, or a bucket of a server of objects. Keys have slashes between their parts and lead
// nowhere else.
type Root interface {
	// Open opens a file for reading.
	Open(key string) (io.ReadCloser, error)
	// Put makes a file, whole or not at all, in place of one that is there. It is on the disk when Put returns. Write
	// may be called again.
	Put(key string, write func(io.Writer) error) error
	// Claim makes an empty file where none is. Where one is, nothing happens, and the error is ErrExists.
	Claim(key string) error
	// List returns the files at and below a key, by key. Hidden ones are none, nor are odd ones.
	List(key string) ([]Entry, error)
	// ListAll is List, and names what is odd there, no file that this program could read: pipes, names that not every
	// system has, and links that lead out of the root, or in a circle.
	ListAll(key string) (list []Entry, odd []string, err error)
	// Names returns the names of what is directly below a key, folders too in which no file is whole yet; of a file its
	// own, and none where nothing is there. Hidden ones are none.
	Names(key string) ([]string, error)
	// Stat describes a file or folder.
	Stat(key string) (Entry, error)
	// Delete removes what is at and below a key, and the folder around it where that is empty then. Nothing there is no
	// error.
	Delete(key string) error
	// Abort ends uploads of files at and below keys that somebody began and nobody will complete. It may ask about all
	// uploads there are.
	Abort(keys ...string)
	// Stage is where the results of a task are put on their way, under a name of their own, before Publish gives them
	// their place.
	Stage(task, name string) string
	// Sweep removes the stages of a task that are among its results and count no more: all but keep.
	Sweep(task, keep string) error
	// Ready says whether results of a task can be published here, before work is put into them.
	Ready(task string) error
	// Publish gives all files below from their place below to, all at once, and removes the folder around from where
	// that is empty then. Where something is at to, nothing happens, and the error is ErrExists.
	Publish(from, to string) error
	// Attend returns this root for work that ends some ten seconds after leaving has, where the store is away: what
	// moves may end. While it waits for the store, waits hears every second why, and nil once the store answers. Once
	// it has waited in vain, it asks once a time until then.
	Attend(leaving context.Context, waits func(cause error)) Root
	// String names the root for messages.
	String() string
}

// HasAny says whether anything is below a root, a bucket whatever it holds. Where nothing is in a folder, a share may
// not be mounted.
func HasAny(root Root) bool {
	f, is := root.(*folder)
	if !is {
		return true
	}
	list, err := fs.ReadDir(f.root.FS(), ".")
	return err == nil && len(list) > 0
}

// Entry is a file, or with Folder a folder.
type Entry struct {
	Key      string
	Size     int64
	Modified time.Time
	Tag      string // of the content, as a server of objects says it; "": it says none
	Folder   bool
}

// Errors of a store, beside those of its files.
var (
	// ErrExists is of a place that is taken.
	ErrExists = errors.New("it exists already")
	// ErrSetup is of a root that is not what the worker's settings say. Trying again does not help.
	ErrSetup = fault.Sentinel(fault.ErrSetup, "the store is not set up", "")
	// ErrDamaged is of files that are not what their manifest says.
	ErrDamaged = errors.New("it is damaged")
)

// Options say where a root is, and how its files are made.
type Options struct {
	URL   string `toml:"url"`             // file:///folder, where %20 is a space, or a folder; or s3://bucket/prefix
	Umask string `toml:"umask,omitempty"` // of a folder, octal, as in 0002; "": the process's
	Group string `toml:"group,omitempty"` // of a folder, name or number; "": the process's
	// of a folder, a file that is in it where its share is mounted; "": nothing tells it from an empty folder in its
	// place
	Mark string `toml:"mark,omitempty"`

	// Of a bucket.
	// https://host:port, or http://; "": Amazon's, or what AWS_ENDPOINT_URL says
	Endpoint string `toml:"endpoint,omitempty"`
	Region   string `toml:"region,omitempty"` // "": what AWS_REGION says, or what the server says
	// the bucket stands in the path, else in the name of the host; nil: by the endpoint
	PathStyle *bool `toml:"path_style,omitempty"`
	// file of certificates, PEM, that the server's is trusted by; "": the system's
	CA string `toml:"ca,omitempty"`
	// file as ~/.aws/credentials, for its owner alone; "": the usual ones
	Credentials string `toml:"credentials,omitempty"`
	Profile     string `toml:"profile,omitempty"` // section of such a file; "": default
}

// IsBucket says whether a root's url is of a bucket.
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

// Folder is the folder of a root that is no bucket.
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

// Roots are the roots that a worker knows, by name.
type Roots map[string]Options

// Open opens the root of a name.
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

// isFull says whether an error is of a disk without room, or of somebody who may take no more of it.
func isFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// IsAway says whether an error is of a store that is away or full: that passes, and is the fault of no task.
func IsAway(err error) bool {
	a, _ := answer(err)
	return isAwayShare(err) || isAway(err) || isFullBucket(a)
}

// Explain adds to an error of the store's files what can be done about it, and its kind.
func Explain(op, path string, err error) error {
	var known *fault.Error
	switch {
	case err == nil, errors.As(err, &known) && known.Kind != nil:
		return err
	case isFull(err):
		return &fault.Error{Op: op, Path: path, Err: err,
			Hint: "make room there; the task goes on when it is tried again", Kind: fault.ErrTryAgain}
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
