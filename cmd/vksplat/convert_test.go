package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"vksplat/farm/spec"
	"vksplat/internal/cli"
	"vksplat/internal/fault"
	"vksplat/internal/run/convert"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/splatfile"
)

// TestFarmFormats wants convert tasks of the farm to offer the formats that can be written, and no others, and the test
// of scores to have all of these.
func TestFarmFormats(t *testing.T) {
	for _, f := range splatfile.Formats() {
		doc := fmt.Sprintf("version = 1\nname = \"x\"\n[[task]]\nkind = \"convert\"\nmodel = \"m\"\nto = %q\n", f.Name)
		if _, err := spec.Parse("job.toml", []byte(doc)); (err == nil) != (f.Write != nil) {
			t.Errorf("%s can be written: %t; farm/spec/kind_convert.go says %v", f.Name, f.Write != nil, err)
		}
		judged := slices.ContainsFunc(f.Extensions, func(x string) bool { _, known := formatBounds[x]; return known })
		if judged != (f.Write != nil) {
			t.Errorf("%s can be written: %t; formatBounds has it: %t", f.Name, f.Write != nil, judged)
		}
	}
}

// TestConvertCancelled stops a conversion, in whatever format, after some pieces: nothing is left, and the exit code is
// that of Ctrl-C.
func TestConvertCancelled(t *testing.T) {
	for _, f := range splatfile.Formats() {
		if f.Write == nil {
			continue
		}
		dir := t.TempDir()
		s := scene.NewSplats(3*splatfile.PieceSplats, 0)
		for i := range s.N {
			s.Quats[4*i] = 1
		}
		w := convert.NewWatch(cli.New(nil, &bytes.Buffer{}, &bytes.Buffer{}))
		ctx, cancel := context.WithCancel(context.Background())
		w.Ctx = ctx
		model := w.Over(splatfile.Memory(s, ply.Meta{}))
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
