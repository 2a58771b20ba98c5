package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// bucket is a root in a server of objects that speaks Amazon's S3. Its objects are there whole or not at all, and
// nothing is renamed: results stay where they are uploaded, below <task>/out/<attempt>, and count once
// <task>/out/MANIFEST.json, which is written on a condition, names that folder.
type bucket struct {
	client *minio.Core
	name   string
	prefix string // of all keys, "" for none
	label  string // for messages
	part   int    // bytes that go in one request
	amazon bool   // it is Amazon's own
	keys   *credentials.Credentials
	patience
}

// Sizes of requests. Servers want parts of 5 MiB and more, and at most 10,000 of them: 84 GB a file.
const (
	partSize   = 8 << 20
	maxParts   = 10000
	partsAhead = 3 // that are on their way beside the one that is read or filled
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

// object is the name of a key's object; that of the root is "".
func (b *bucket) object(key string) string {
	if name := path.Join(b.prefix, key); name != "." {
		return name
	}
	return ""
}

// below is what names of objects below one begin with.
func below(object string) string {
	if object == "" {
		return ""
	}
	return object + "/"
}

// patiently does something again while the server is unreachable or busy, and explains what goes wrong for good.
func (b *bucket) patiently(op, key string, do func() error) error {
	if len(b.object(key)) > maxObject {
		return &fs.PathError{Op: op, Path: key,
			Err: fmt.Errorf("%w: it is longer than %d bytes", fs.ErrInvalid, maxObject)}
	}
	return b.explain(op, key, b.try(op, key, isAway, func() error { return b.withKeys(do) }))
}

// again is that of patience, with credentials as they are now.
func (b *bucket) again(times int, away func(error) bool, do func() error) error {
	return b.patience.again(times, away, func() error { return b.withKeys(do) })
}

// withKeys does something once more where the server refuses the credentials: those that a program or a role gave may
// end before their time, and be had anew.
func (b *bucket) withKeys(do func() error) error {
	err := do()
	if !isRefused(err) {
		return err
	}
	b.keys.Expire()
	return do()
}

// inSteps does something of several requests, each of which is patient.
func (b *bucket) inSteps(op, key string, do func() error) error {
	if err := b.patiently(op, key, func() error { return nil }); err != nil {
		return err
	}
	return b.explain(op, key, do())
}

// isGone says whether an object stands for none: an empty manifest is one that was taken back.
func isGone(object string, size int64) bool { return size == 0 && path.Base(object) == ManifestName }

func (b *bucket) Stat(key string) (e Entry, err error) {
	object := b.object(key)
	err = b.patiently("stat", key, func() error {
		if key == "." {
			e = Entry{Key: key, Folder: true}
			return nil
		}
		ctx, cancel := b.bound(answerWithin)
		defer cancel()
		info, err := b.client.StatObject(ctx, b.name, object, minio.StatObjectOptions{})
		switch {
		case err == nil && !isGone(object, info.Size):
			e = Entry{Key: key, Size: info.Size, Modified: info.LastModified, Tag: info.ETag}
			return nil
		case err != nil && !isMissing(err):
			return err
		}
		for info := range b.client.ListObjectsIter(ctx, b.name,
			minio.ListObjectsOptions{Prefix: below(object), Recursive: true, MaxKeys: 2}) {
			if info.Err != nil {
				return info.Err
			}
			if !isGone(info.Key, info.Size) {
				e = Entry{Key: key, Folder: true}
				return nil
			}
		}
		return fs.ErrNotExist
	})
	return e, err
}

func (b *bucket) List(key string) ([]Entry, error) {
	list, _, err := b.ListAll(key)
	return list, err
}

// Names implements Root: what has no files is nowhere.
func (b *bucket) Names(key string) (names []string, err error) {
	list, err := b.List(key)
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

func (b *bucket) ListAll(key string) (list []Entry, odd []string, err error) {
	err = b.patiently("list", key, func() error {
		list, odd, err = b.list(key)
		return err
	})
	slices.SortFunc(list, func(a, b Entry) int { return strings.Compare(a.Key, b.Key) })
	return list, odd, err
}

func (b *bucket) list(key string) (list []Entry, odd []string, err error) {
	object := b.object(key)
	ctx, watch := b.newWatch()
	defer watch.end()
	for info := range b.client.ListObjectsIter(ctx, b.name,
		minio.ListObjectsOptions{Prefix: below(object), Recursive: true}) {
		watch.touch()
		if info.Err != nil {
			return nil, nil, watch.cause(info.Err)
		}
		name := strings.TrimPrefix(info.Key, below(object))
		if strings.HasSuffix(name, "/") || name == "" || strings.HasPrefix(name, ".") || strings.Contains(name, "/.") ||
			isGone(info.Key, info.Size) {
			continue // what browsers of buckets make for a folder, and what is hidden
		}
		if !isKey(name) {
			odd = append(odd, key+"/"+name)
			continue
		}
		list = append(list, Entry{Key: path.Join(key, name), Size: info.Size, Modified: info.LastModified,
			Tag: info.ETag})
	}
	if len(list) > 0 || object == "" {
		return list, odd, nil
	}
	info, err := b.client.StatObject(ctx, b.name, object, minio.StatObjectOptions{})
	if err == nil && isGone(object, info.Size) {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, nil, watch.cause(err)
	}
	return []Entry{{Key: key, Size: info.Size, Modified: info.LastModified, Tag: info.ETag}}, odd, nil
}

// Delete removes objects. What uploads of them that were killed left, Abort does: it is long to find, and each
// checkpoint deletes.
func (b *bucket) Delete(key string) error {
	if key == "." {
		return &fs.PathError{Op: "delete", Path: key, Err: fs.ErrInvalid}
	}
	return b.inSteps("delete", key, func() error {
		object := b.object(key)
		var names []string
		err := b.again(tries, isAway, func() error {
			names = []string{object}
			ctx, watch := b.newWatch()
			defer watch.end()
			for info := range b.client.ListObjectsIter(ctx, b.name,
				minio.ListObjectsOptions{Prefix: below(object), Recursive: true}) {
				watch.touch()
				if info.Err != nil {
					return watch.cause(info.Err)
				}
				names = append(names, info.Key)
			}
			return nil
		})
		if err != nil {
			return err
		}
		return b.remove(names)
	})
}

// remove deletes objects, some at once.
func (b *bucket) remove(names []string) error {
	errs := make([]error, len(names))
	slots := make(chan struct{}, deletes)
	var group sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			err := b.again(tries, isAway, func() error {
				ctx, cancel := b.bound(answerWithin)
				defer cancel()
				return b.client.RemoveObject(ctx, b.name, name, minio.RemoveObjectOptions{})
			})
			if !isMissing(err) {
				errs[i] = err
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// Abort implements Root. Where the server does not list uploads, it must clear them away by itself.
func (b *bucket) Abort(keys ...string) {
	prefixes := make([]string, len(keys))
	for i, key := range keys {
		prefixes[i] = b.object(key)
	}
	if !b.amazon && len(keys) > 0 {
		prefixes = []string{""} // MinIO lists uploads of one whole name, or all
	}
	meant := func(object string) bool {
		return slices.ContainsFunc(keys, func(key string) bool {
			return object == b.object(key) || strings.HasPrefix(object, below(b.object(key)))
		})
	}
	for _, prefix := range prefixes {
		b.abort(prefix, meant)
	}
}

// abort ends the uploads that are meant, of those whose names begin with a prefix.
func (b *bucket) abort(prefix string, meant func(object string) bool) {
	ctx, watch := b.newWatch()
	defer watch.end()
	for upload := range b.client.ListIncompleteUploads(ctx, b.name, prefix, true) {
		watch.touch()
		if upload.Err != nil {
			return
		}
		if meant(upload.Key) {
			_ = b.client.AbortMultipartUpload(ctx, b.name, upload.Key, upload.UploadID) // the next sweep finds it
		}
	}
}
