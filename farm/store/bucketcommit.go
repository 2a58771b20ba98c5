package store

import (
	"bytes"
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

// Stage implements Root: results stay where they are uploaded.
func (b *bucket) Stage(task, name string) string { return path.Join(OutOf(task), name) }

// Sweep implements Root. Uploads of stages that have no file yet are ended as well.
func (b *bucket) Sweep(task, keep string) error {
	out := OutOf(task)
	list, err := b.List(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	done := keep
	for _, e := range list { // by key: those of a folder follow each other
		at, _, inFolder := strings.Cut(strings.TrimPrefix(e.Key, out+"/"), "/")
		if _, isStage := stageOf(at); !inFolder || !isStage || at == keep || at == done {
			continue
		}
		if err := b.Delete(path.Join(out, at)); err != nil {
			return err
		}
		done = at
	}
	b.Abort(out)
	return nil
}

// register is the manifest of a place as it is now: what is written there only on the condition that nobody else has
// written since.
type register struct {
	object string
	data   []byte
	tag    string // "": there is no object
}

func (b *bucket) readRegister(place string) (*register, error) {
	g := &register{object: b.object(path.Join(place, ManifestName))}
	err := b.again(tries, isAway, func() error {
		ctx, watch := b.newWatch()
		defer watch.end()
		body, info, _, err := b.client.GetObject(ctx, b.name, g.object, minio.GetObjectOptions{})
		if err != nil {
			return watch.cause(err)
		}
		defer body.Close() // only read
		if g.tag = info.ETag; g.tag == "" {
			return fmt.Errorf("the server sent no ETag for %s", g.object)
		}
		g.data, err = io.ReadAll(io.LimitReader(content{body, watch}, maxManifest+1))
		return watch.cause(err)
	})
	if isMissing(err) {
		return &register{object: g.object}, nil
	}
	return g, err
}

// replace writes a register, unless somebody else has since it was read: that is ErrExists.
func (b *bucket) replace(g *register, data []byte) error {
	o := minio.PutObjectOptions{}
	if g.tag == "" {
		o.SetMatchETagExcept("*")
	} else {
		o.SetMatchETag(g.tag)
	}
	err := b.put(g.object, data, o)
	if isTaken(err) || g.tag != "" && isMissing(err) { // what was to be replaced is gone
		return ErrExists
	}
	return err
}

// Claim implements Root. Where the answer to a first request was lost, the place counts as taken.
func (b *bucket) Claim(key string) error {
	return b.inSteps("claim", key, func() error { return b.replace(&register{object: b.object(key)}, nil) })
}

// Publish copies the manifest below from to that below to, which makes it count: the files stay where they are. Where
// from is no part of to, it has no manifest then.
func (b *bucket) Publish(from, to string) error {
	return b.inSteps("publish", to, func() error {
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
			return nil // the answer to an earlier request was lost, or somebody has moved the same
		}
		if err != nil {
			return err
		}
		// Somebody has replaced it: that is not what was to go.
		return errors.Join(fs.ErrNotExist, b.remove([]string{b.object(path.Join(to, ManifestName))}))
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
		return nil // it is ours: the answer to an earlier request was lost
	}
	return ErrExists
}

// probePrefix begins in tempFolder the names of files that Ready writes.
const probePrefix = "probe-"

// Ready writes a file three times, on conditions of which the last two do not hold: a server that takes them all would
// let each attempt replace the results of another.
func (b *bucket) Ready(task string) error {
	g := &register{object: b.object(path.Join(task, tempFolder, probePrefix+rand.Text()))}
	return b.inSteps("open root", task, func() error {
		defer func() { _ = b.remove([]string{g.object}) }() // gc finds what is left
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
