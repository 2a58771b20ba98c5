package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/minio/minio-go/v7"
)

// Put uploads a file, a large one in parts, of which a few are in memory.
func (b *bucket) Put(key string, write func(io.Writer) error) error {
	return b.operate("put", key, func() error {
		u := &upload{bucket: b, object: b.object(key)}
		err := write(u)
		if err == nil {
			err = u.finish()
		}
		for len(u.ahead) > 0 {
			_ = u.collect() // the first error is the one to report
		}
		if err != nil && u.id != "" {
			ctx, cancel := b.bound(answerWithin)
			defer cancel()
			_ = b.client.AbortMultipartUpload(ctx, b.name, u.object, u.id) // else Abort does
		}
		return err
	})
}

// upload is an upload in progress.
type upload struct {
	*bucket
	object string
	id     string // of an upload in parts, "" before the first
	buffer []byte // the next part
	bytes  int64  // written
	parts  []minio.CompletePart
	ahead  inOrder[minio.CompletePart] // the parts after them
}

// inOrder are values that are on their way, first things first.
type inOrder[T any] []chan arrival[T]

// arrival is a value, or its error.
type arrival[T any] struct {
	value T
	err   error
}

// start begins to get the next value in the background.
func (l *inOrder[T]) start(get func() (T, error)) {
	to := make(chan arrival[T], 1)
	*l = append(*l, to)
	go func() {
		value, err := get()
		to <- arrival[T]{value, err}
	}()
}

// next waits for the first value.
func (l *inOrder[T]) next() (T, error) {
	first := <-(*l)[0]
	*l = (*l)[1:]
	return first.value, first.err
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (n int, err error) {
	u.bytes += int64(len(p))
	for len(p) > 0 {
		k := min(len(p), u.part-len(u.buffer))
		u.buffer = append(u.buffer, p[:k]...)
		n, p = n+k, p[k:]
		if len(u.buffer) == u.part {
			if err := u.send(); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// send uploads the buffered part in the background.
func (u *upload) send() error {
	var err error
	if u.id == "" {
		err = u.request(answerWithin, func(ctx context.Context) (err error) {
			u.id, err = u.client.NewMultipartUpload(ctx, u.name, u.object, minio.PutObjectOptions{})
			return err
		})
	} else if len(u.ahead) == partsAhead {
		err = u.collect()
	}
	if err != nil {
		return err
	}
	number, data := len(u.parts)+len(u.ahead)+1, u.buffer
	if number > maxParts {
		return fmt.Errorf("a file has at most %d parts of %d bytes", maxParts, u.part)
	}
	u.buffer = nil
	u.ahead.start(func() (minio.CompletePart, error) { return u.sendPart(number, data) })
	return nil
}

// collect waits for the first part on its way.
func (u *upload) collect() error {
	part, err := u.ahead.next()
	u.parts = append(u.parts, part)
	return err
}

func (u *upload) sendPart(number int, data []byte) (part minio.CompletePart, err error) {
	sum := sumHex(data)
	err = u.transfer(func(ctx context.Context, w *watch) error {
		sent, err := u.client.PutObjectPart(ctx, u.name, u.object, u.id, number, content{bytes.NewReader(data), w},
			int64(len(data)), minio.PutObjectPartOptions{Sha256Hex: sum, DisableContentSha256: true})
		part = minio.CompletePart{PartNumber: number, ETag: sent.ETag}
		return err
	})
	return part, err
}

// sumHex is the hash that the server checks.
func sumHex(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// finish completes the object.
func (u *upload) finish() error {
	if u.id == "" {
		return u.put(u.object, u.buffer, minio.PutObjectOptions{})
	}
	if len(u.buffer) > 0 {
		if err := u.send(); err != nil {
			return err
		}
	}
	for len(u.ahead) > 0 {
		if err := u.collect(); err != nil {
			return err
		}
	}
	asked := 0
	return u.request(5*answerWithin, func(ctx context.Context) error { // some servers copy all of it
		_, err := u.client.CompleteMultipartUpload(ctx, u.name, u.object, u.id, u.parts, minio.PutObjectOptions{})
		if a, is := answer(err); is && a.Code == minio.NoSuchUpload && asked > 0 && u.isThere() {
			return nil // the answer to an earlier request was lost
		}
		asked++
		return err
	})
}

// isThere reports whether the object has the uploaded size.
func (u *upload) isThere() bool {
	ctx, cancel := u.bound(answerWithin)
	defer cancel()
	info, err := u.client.StatObject(ctx, u.name, u.object, minio.StatObjectOptions{})
	return err == nil && info.Size == u.bytes
}

// put writes an object in one request.
func (b *bucket) put(object string, data []byte, o minio.PutObjectOptions) error {
	o.DisableContentSha256 = true // of chunks: the whole has one
	sum := sumHex(data)
	return b.transfer(func(ctx context.Context, w *watch) error {
		_, err := b.client.PutObject(ctx, b.name, object, content{bytes.NewReader(data), w}, int64(len(data)), "",
			sum, o)
		return err
	})
}
