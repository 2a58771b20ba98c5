package store

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/minio/minio-go/v7"
)

// InPlace implements Root.
func (b *bucket) InPlace() bool { return true }

// register is the current manifest of a place, for a conditional write.
type register struct {
	object string
	data   []byte
	tag    string // "": there is no object
}

func (b *bucket) readRegister(place string) (*register, error) {
	g := &register{object: b.object(path.Join(place, ManifestName))}
	err := b.transfer(func(ctx context.Context, w *watch) error {
		body, info, _, err := b.client.GetObject(ctx, b.name, g.object, minio.GetObjectOptions{})
		if err != nil {
			return err
		}
		defer body.Close() // only read
		if g.tag = info.ETag; g.tag == "" {
			return fmt.Errorf("the server sent no ETag for %s", g.object)
		}
		g.data, err = io.ReadAll(io.LimitReader(content{body, w}, maxManifest+1))
		return err
	})
	if isMissing(err) {
		return &register{object: g.object}, nil
	}
	return g, err
}

// replace writes a register, or fails with ErrExists if it has changed since it was read.
func (b *bucket) replace(g *register, data []byte) error {
	o := minio.PutObjectOptions{}
	if g.tag == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(g.tag)
	}
	err := b.put(g.object, data, o)
	if isTaken(err) || g.tag != "" && isMissing(err) { // it is gone
		return ErrExists
	}
	return err
}

// Claim implements Root. If the answer to a first request was lost, it fails with ErrExists.
func (b *bucket) Claim(key string) error {
	return b.operate("claim", key, func() error { return b.replace(&register{object: b.object(key)}, nil) })
}

// Publish copies the manifest below from to that below to, which commits it: the files stay. If from is not below to,
// its manifest is withdrawn.
func (b *bucket) Publish(from, to string) error {
	return b.operate("publish", to, func() error {
		source, err := b.readRegister(from)
		if err != nil {
			return err
		}
		if len(source.data) == 0 {
			return fs.ErrNotExist
		}
		if err := b.publish(source.data, to); err != nil {
			return err
		}
		if strings.HasPrefix(from, to+"/") {
			return nil
		}
		if err := b.replace(source, nil); !errors.Is(err, ErrExists) {
			return err
		}
		now, err := b.readRegister(from)
		if err == nil && now.tag != "" && len(now.data) == 0 {
			return nil // an earlier answer was lost, or another process did the same
		}
		if err != nil {
			return err
		}
		// Another process has replaced it.
		return errors.Join(fs.ErrNotExist, b.remove(b.object(path.Join(to, ManifestName))))
	})
}

func (b *bucket) publish(manifest []byte, to string) error {
	g, err := b.readRegister(to)
	if err != nil {
		return err
	}
	if len(g.data) == 0 {
		if err = b.replace(g, manifest); !errors.Is(err, ErrExists) {
			return err
		}
		if g, err = b.readRegister(to); err != nil {
			return err
		}
	}
	if bytes.Equal(g.data, manifest) {
		return nil // ours: the answer to an earlier request was lost
	}
	return ErrExists
}

// probePrefix begins in tempFolder the names of files that Ready writes.
const probePrefix = "probe-"

// Ready writes a file three times, on conditions of which the last two do not hold: a server that accepts them would
// let attempts replace each other's results.
func (b *bucket) Ready(task string) error {
	g := &register{object: b.object(path.Join(task, tempFolder, probePrefix+rand.Text()))}
	return b.operate("open root", task, func() error {
		defer func() { _ = b.remove(g.object) }() // else gc does
		refused := 0
		for _, tag := range []string{"", "", strings.Repeat("0", 32)} {
			g.tag = tag
			err := b.replace(g, []byte("checking for conditional writes\n"))
			a, _ := answer(err)
			if errors.Is(err, ErrExists) {
				refused++
			} else if err != nil && a.StatusCode != http.StatusNotImplemented {
				return err
			}
		}
		if refused < 2 {
			return setupError(b.label, "keep results in a folder, or on a server that supports If-None-Match and "+
				"If-Match for PutObject: Amazon S3, MinIO, Ceph, Cloudflare R2, versitygw",
				"this server does not support conditional writes, which keep two attempts at a task apart")
		}
		return nil
	})
}
