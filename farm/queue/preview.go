package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"vksplat/scene"
)

// Small pictures of what tasks make go through the queue, which is not for files otherwise: whoever looks at a farm has a token of it and often no way to the
// store, and a worker's own disk nobody else sees. They are few bytes, the newest of a task replaces the one before, and all of them together are bounded.
const (
	MaxPreview      = 64 << 10 // bytes of one
	maxPreviewSide  = 1024     // pixels
	previewsBytes   = 256 << 20
	maxPreviewStore = MaxPreview + 1<<10 // with what the server adds
)

// previewStream is the bucket of small pictures. When it is full, the oldest go.
func previewStream(replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: "KV_preview", Subjects: []string{"$KV.preview.>"}, Replicas: replicas, MaxMsgsPerSubject: 1, MaxMsgSize: maxPreviewStore, MaxBytes: previewsBytes,
		Discard: jetstream.DiscardOld, DenyDelete: true, AllowDirect: true,
	}
}

// ErrPreview says that something is no small picture.
var ErrPreview = errors.New("this is no small JPEG picture")

// CheckPreview refuses what is no small JPEG file, without unpacking it.
func CheckPreview(data []byte) error {
	if len(data) > MaxPreview {
		return fmt.Errorf("%w: %d bytes, %d are possible", ErrPreview, len(data), MaxPreview)
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrPreview, err)
	}
	if size := image.Pt(c.Width, c.Height); size.X < 1 || size.Y < 1 || max(size.X, size.Y) > maxPreviewSide {
		return fmt.Errorf("%w: %d x %d pixels", ErrPreview, size.X, size.Y)
	}
	return nil
}

// Preview keeps a picture of what the task makes, in place of the one before. It may get lost while the server is away.
func (l *Lease) Preview(data []byte) error {
	if err := CheckPreview(data); err != nil {
		return err
	}
	return l.w.q.nc.Publish(l.w.q.previews.subject(entryKey(l.Job, l.Index)), data)
}

// Preview returns the last picture of what a task makes, or made, nil where there is none. Whoever shows it asks CheckPreview: a worker put it there.
func (q *Queue) Preview(ctx context.Context, job string, index int) ([]byte, error) {
	data, _, err := q.previews.get(ctx, entryKey(job, index))
	if errors.Is(err, errAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, failure("read preview", job, err, "", scene.ErrTryAgain)
	}
	return data, nil
}

// Previews says which tasks of a job have a picture.
func (q *Queue) Previews(ctx context.Context, job string) (map[int]bool, error) {
	has := map[int]bool{}
	prefix := q.previews.subject(tokenOf(job)) + "."
	err := q.retry(ctx, "list previews", func(ctx context.Context) error {
		s, err := q.js.Stream(ctx, q.previews.stream)
		if errors.Is(err, jetstream.ErrStreamNotFound) { // of a server that was set up before there were any
			return nil
		}
		if err != nil {
			return err
		}
		info, err := s.Info(ctx, jetstream.WithSubjectFilter(prefix+"*"))
		if err != nil {
			return err
		}
		for subject := range info.State.Subjects {
			if i, err := strconv.Atoi(strings.TrimPrefix(subject, prefix)); err == nil {
				has[i] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, failure("list previews", job, err, "", scene.ErrTryAgain)
	}
	return has, nil
}
