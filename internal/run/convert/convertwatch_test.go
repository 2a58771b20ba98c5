package convert

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
)

// TestConvertCancelled stops a conversion, in whatever format, after some pieces: nothing is left, and the exit code is
// that of Ctrl-C.
func TestConvertCancelled(t *testing.T) {
	for _, f := range splatfile.Formats() {
		if f.Write == nil || f.Open == nil {
			continue
		}
		dir := t.TempDir()
		s := scene.NewSplats(3*splatfile.PieceSplats, 0)
		for i := range s.N {
			s.Quats[4*i] = 1
		}
		w := newWatch(cli.New(nil, &bytes.Buffer{}, &bytes.Buffer{}))
		ctx, cancel := context.WithCancel(context.Background())
		w.ctx = ctx
		model := w.over(splatfile.Memory(s, ply.Meta{}))
		if _, ok := model.(splatfile.Gatherer); !ok {
			t.Error("a model whose splats can be read in any order is one no more")
		}
		pieces := 0
		stopped := &stopping{model, func() {
			if pieces++; pieces == 2 {
				cancel()
			}
		}}
		_, err := f.Write(filepath.Join(dir, "model"+f.Extensions[0]), stopped, splatfile.WriteOptions{})
		if !errors.Is(err, context.Canceled) || fault.ExitCode(err) != fault.ExitInterrupted {
			t.Errorf("%s: %v", f.Name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: left: %v, %v", f.Name, left, err)
		}
	}
}

// stopping calls seen after every piece.
type stopping struct {
	splatfile.Source
	seen func()
}

func (s *stopping) Read(put func(*scene.Splats) error) error {
	return s.Source.Read(func(piece *scene.Splats) error {
		err := put(piece)
		s.seen()
		return err
	})
}
