package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/minio/minio-go/v7"
)

// Put uploads a file, a large one in parts, of which a few are in memory.
func (b *bucket) Put(key string, write func(io.Writer) error) error {
	return b.operate("put", key, func() error {
		u := &upload{bucket: b, object: b.object(key), slots: make(chan struct{}, partsAhead)}
		err := write(u)
		if err == nil {
			err = u.finish()
		}
		u.group.Wait()
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
	n      int    // parts so far
	bytes  int64  // written
	slots  chan struct{}
	group  sync.WaitGroup

	mutex sync.Mutex // guards what follows
	parts []minio.CompletePart
	err   error
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
	if u.id == "" {
		if err := u.begin(); err != nil {
			return err
		}
	}
	u.mutex.Lock()
	err := u.err
	u.mutex.Unlock()
	if err != nil {
		return err
	}
	if u.n++; u.n > maxParts {
		return fmt.Errorf("a file has at most %d parts of %d bytes", maxParts, u.part)
	}
	number, data := u.n, u.buffer
	u.buffer = nil
	u.slots <- struct{}{}
	u.group.Go(func() {
		defer func() { <-u.slots }()
		part, err := u.sendPart(number, data)
		u.mutex.Lock()
		defer u.mutex.Unlock()
		u.err = errors.Join(u.err, err)
		u.parts = append(u.parts, part)
	})
	return nil
}

func (u *upload) begin() error {
	return u.request(answerWithin, func(ctx context.Context) (err error) {
		u.id, err = u.client.NewMultipartUpload(ctx, u.name, u.object, minio.PutObjectOptions{})
		return err
	})
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
	u.group.Wait()
	if u.err != nil {
		return u.err
	}
	parts := make([]minio.CompletePart, u.n)
	for _, p := range u.parts {
		parts[p.PartNumber-1] = p
	}
	asked := 0
	return u.request(5*answerWithin, func(ctx context.Context) error { // some servers copy all of it
		_, err := u.client.CompleteMultipartUpload(ctx, u.name, u.object, u.id, parts, minio.PutObjectOptions{})
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
