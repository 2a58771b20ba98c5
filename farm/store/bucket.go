package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"vksplat/internal/parallel"
)

// bucket is a root in an object store that speaks Amazon's S3. Objects are atomic and cannot be renamed: results stay
// below <task>/out/<attempt>, and count once a conditional write of <task>/out/MANIFEST.json names that folder.
type bucket struct {
	client *minio.Core
	name   string
	prefix string // of all keys, "" for none
	label  string // for messages
	part   int    // bytes per request
	amazon bool   // not another server
	keys   *credentials.Credentials
	patience
}

// Sizes of requests. Servers require parts of at least 5 MiB, and at most 10,000 of them: 84 GB a file.
const (
	partSize   = 8 << 20
	maxParts   = 10000
	partsAhead = 3 // in flight besides the one that is read or filled
	deletes    = 8 // at once
)

// maxObject is the longest name of an object, in bytes.
const maxObject = 1024

func (b *bucket) String() string { return b.label }

// Attend implements Root.
func (b *bucket) Attend(leaving context.Context, waits func(cause error)) Root {
	a := *b
	a.patience = b.attended(leaving, waits)
	return &a
}

// object is the object name of a key, "" of the root.
func (b *bucket) object(key string) string {
	if name := path.Join(b.prefix, key); name != "." {
		return name
	}
	return ""
}

// below is the prefix of the objects below one.
func below(object string) string {
	if object == "" {
		return ""
	}
	return object + "/"
}

// operate runs an operation, whose requests are retried one by one, and explains its error.
func (b *bucket) operate(op, key string, do func() error) error {
	if len(b.object(key)) > maxObject {
		return &fs.PathError{Op: op, Path: key,
			Err: fmt.Errorf("%w: it is longer than %d bytes", fs.ErrInvalid, maxObject)}
	}
	err := b.check(op, key, isAway)
	if err == nil {
		err = do()
	}
	return explain(op, b.label, key, err)
}

// retry sends a request, again while the server is away, and once more with new credentials if the server refuses the
// old ones: those of a program or a role may expire early.
func (b *bucket) retry(times int, do func() error) error {
	return b.again(times, isAway, func() error {
		err := do()
		if isRefused(err) {
			b.keys.Expire()
			err = do()
		}
		return err
	})
}

// request sends a short request.
func (b *bucket) request(within time.Duration, do func(ctx context.Context) error) error {
	return b.retry(tries, func() error {
		ctx, cancel := b.bound(within)
		defer cancel()
		return do(ctx)
	})
}

// transfer sends a request that may last while bytes flow.
func (b *bucket) transfer(do func(ctx context.Context, w *watch) error) error {
	return b.retry(tries, func() error {
		ctx, w := b.newWatch()
		defer w.end()
		return w.cause(do(ctx, w))
	})
}

// isGone reports whether an object counts as missing: an empty manifest is a withdrawn one.
func isGone(object string, size int64) bool { return size == 0 && path.Base(object) == ManifestName }

func (b *bucket) Stat(key string) (e Entry, err error) {
	err = b.operate("stat", key, func() error {
		e = Entry{Key: key, Folder: true}
		if key == "." {
			return nil
		}
		return b.request(answerWithin, func(ctx context.Context) error {
			object := b.object(key)
			switch info, err := b.client.StatObject(ctx, b.name, object, minio.StatObjectOptions{}); {
			case err == nil && !isGone(object, info.Size):
				e = Entry{Key: key, Size: info.Size, Modified: info.LastModified, Tag: info.ETag}
				return nil
			case err != nil && !isMissing(err):
				return err
			}
			for info := range b.objects(ctx, key, 2) {
				if info.Err != nil || !isGone(info.Key, info.Size) {
					return info.Err
				}
			}
			return fs.ErrNotExist
		})
	})
	return e, err
}

// objects lists the objects below a key, in pages of a size, 0 for the server's.
func (b *bucket) objects(ctx context.Context, key string, page int) iter.Seq[minio.ObjectInfo] {
	return b.client.ListObjectsIter(ctx, b.name,
		minio.ListObjectsOptions{Prefix: below(b.object(key)), Recursive: true, MaxKeys: page})
}

// Names implements Root.
func (b *bucket) Names(key string) (names []string, err error) {
	list, _, err := b.List(key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range list {
		if e.Key == key {
			return []string{path.Base(key)}, nil
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(e.Key, key+"/"), "/")
		names = append(names, name)
	}
	return slices.Compact(names), err
}

func (b *bucket) List(key string) (list []Entry, odd []string, err error) {
	object := b.object(key)
	all, err := b.all("list", key)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range all {
		name := strings.TrimPrefix(info.Key, below(object))
		if strings.HasSuffix(name, "/") || name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") ||
			isGone(info.Key, info.Size) {
			continue // a folder as browsers of buckets make it, or hidden
		}
		if !isKey(name) {
			odd = append(odd, key+"/"+name)
			continue
		}
		list = append(list, Entry{Key: path.Join(key, name), Size: info.Size, Modified: info.LastModified,
			Tag: info.ETag})
	}
	if len(list) == 0 && object != "" {
		file, err := b.Stat(key)
		if err == nil && file.Folder { // of hidden files
			err = &fs.PathError{Op: "list", Path: key, Err: fs.ErrNotExist}
		}
		if err != nil {
			return nil, nil, err
		}
		list = []Entry{file}
	}
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return list, odd, nil
}

// all lists the objects below a key.
func (b *bucket) all(op, key string) (list []minio.ObjectInfo, err error) {
	err = b.operate(op, key, func() error {
		return b.transfer(func(ctx context.Context, w *watch) error {
			list = nil
			for info := range b.objects(ctx, key, 0) {
				w.touch()
				if info.Err != nil {
					return info.Err
				}
				list = append(list, info)
			}
			return nil
		})
	})
	return list, err
}

// Delete implements Root. Unfinished uploads stay for Abort: finding them is slow, and each checkpoint deletes.
func (b *bucket) Delete(key string) error {
	if key == "." {
		return &fs.PathError{Op: "delete", Path: key, Err: fs.ErrInvalid}
	}
	all, err := b.all("delete", key)
	if err != nil {
		return err
	}
	names := []string{b.object(key)}
	for _, info := range all {
		names = append(names, info.Key)
	}
	return explain("delete", b.label, key, b.remove(names...))
}

// remove deletes objects, several at once.
func (b *bucket) remove(names ...string) error {
	return parallel.Limited(len(names), deletes, func(i int) error {
		err := b.request(answerWithin, func(ctx context.Context) error {
			return b.client.RemoveObject(ctx, b.name, names[i], minio.RemoveObjectOptions{})
		})
		if isMissing(err) {
			return nil
		}
		return err
	})
}

// Abort implements InPlace. A server that does not list uploads must expire them itself.
func (b *bucket) Abort(keys ...string) {
	prefixes := make([]string, len(keys))
	for i, key := range keys {
		prefixes[i] = b.object(key)
	}
	if !b.amazon && len(keys) > 0 {
		prefixes = []string{""} // MinIO lists uploads of one object, or all
	}
	meant := func(object string) bool {
		return slices.ContainsFunc(keys, func(key string) bool {
			return object == b.object(key) || strings.HasPrefix(object, below(b.object(key)))
		})
	}
	for _, prefix := range prefixes {
		ctx, watch := b.newWatch()
		for upload := range b.client.ListIncompleteUploads(ctx, b.name, prefix, true) {
			watch.touch()
			if upload.Err == nil && meant(upload.Key) {
				_ = b.client.AbortMultipartUpload(ctx, b.name, upload.Key, upload.UploadID) // the next sweep finds it
			}
		}
		watch.end()
	}
}
