package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"

	"github.com/minio/minio-go/v7"
)

// Open reads the first part of a file. The reader prefetches the others.
func (b *bucket) Open(key string) (io.ReadCloser, error) {
	r := &objectReader{bucket: b, key: key, object: b.object(key)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	var err error
	if r.now, err = r.fetch("open", 0); err == nil && isGone(r.object, r.size) {
		err = &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist}
	}
	if err != nil {
		r.cancel()
		return nil, err
	}
	r.asked = 1
	return r, nil
}

// objectReader reads an object by its parts.
type objectReader struct {
	*bucket
	key, object string
	ctx         context.Context // ends with Close
	cancel      context.CancelFunc
	tag         string // of the content, from the first part
	size        int64
	now         []byte // the rest of the current part
	asked       int64  // parts requested
	ahead       inOrder[[]byte]
	err         error
}

// Read implements io.Reader.
func (r *objectReader) Read(p []byte) (int, error) {
	for len(r.now) == 0 && r.err == nil {
		for len(r.ahead) <= partsAhead && r.asked*int64(r.part) < r.size {
			part := r.asked
			r.ahead.start(func() ([]byte, error) { return r.fetch("read", part) })
			r.asked++
		}
		if len(r.ahead) == 0 {
			r.err = io.EOF
			break
		}
		r.now, r.err = r.ahead.next()
	}
	if r.err != nil {
		return 0, r.err
	}
	n := copy(p, r.now)
	r.now = r.now[n:]
	return n, nil
}

// fetch reads a part. The first sets the size and the tag that the others must have.
func (r *objectReader) fetch(op string, part int64) (data []byte, err error) {
	from := part * int64(r.part)
	o := minio.GetObjectOptions{}
	err = o.SetRange(from, from+int64(r.part)-1)
	if part > 0 && r.tag != "" {
		err = errors.Join(err, o.SetMatchETag(r.tag))
	}
	if err != nil {
		return nil, err
	}
	err = r.operate(op, r.key, func() error {
		return r.transfer(func(ctx context.Context, w *watch) (err error) {
			defer context.AfterFunc(r.ctx, w.end)()
			if data, err = r.get(ctx, w, part, o); r.ctx.Err() != nil {
				err = r.ctx.Err() // closed
			}
			return err
		})
	})
	return data, err
}

// get is one request of fetch.
func (r *objectReader) get(ctx context.Context, w *watch, part int64, o minio.GetObjectOptions) ([]byte, error) {
	from := part * int64(r.part)
	body, info, header, err := r.client.GetObject(ctx, r.bucket.name, r.object, o)
	switch a, _ := answer(err); {
	case part == 0 && a.StatusCode == http.StatusRequestedRangeNotSatisfiable:
		return nil, nil // there is nothing in it
	case isTaken(err):
		return nil, fmt.Errorf("%s changed while it was read", r.key)
	case err != nil:
		return nil, err
	}
	defer body.Close() // only read
	size := info.Size
	if _, all, ranged := strings.Cut(header.Get("Content-Range"), "/"); ranged {
		if size, err = strconv.ParseInt(all, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: the server sent no size: %w", r.key, err)
		}
	} else if size > int64(r.part) {
		return nil, fmt.Errorf("%s: the server ignores requests for a part of a file", r.key)
	}
	if part == 0 {
		r.size, r.tag = size, info.ETag
	}
	if size != r.size || from > size {
		return nil, fmt.Errorf("%s changed while it was read", r.key)
	}
	data := make([]byte, min(size-from, int64(r.part)))
	_, err = io.ReadFull(content{body, w}, data)
	return data, err
}

// Close implements io.Closer.
func (r *objectReader) Close() error {
	r.cancel()
	return nil
}
