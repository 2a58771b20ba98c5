package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"vksplat/farm/server"
)

// TestTokenFile makes a token of a name that is in use: where its file cannot be made or written, the other stays let in and none is added.
func TestTokenFile(t *testing.T) {
	dir := t.TempDir()
	s, err := server.Start(t.Context(), server.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	a := newApp(nil, io.Discard, io.Discard)
	out := filepath.Join(t.TempDir(), "gpu1.token")
	o := &tokenOptions{dir: dir, role: "worker", name: "gpu1", out: out}
	if err := a.token(o); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info, err)
	}
	before, err := server.Keys(dir)
	if err != nil {
		t.Fatal(err)
	}
	o.out = filepath.Join(dir, "nowhere", "gpu1.token")
	if err := a.token(o); err == nil {
		t.Error("a token was made in a folder that is not there")
	}
	closed, err := os.Create(filepath.Join(t.TempDir(), "closed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := makeToken(closed, dir, o); err == nil {
		t.Error("a token was written to a file that is closed")
	}
	after, err := server.Keys(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("%d keys, there were %d: %v", len(after), len(before), err)
	}
}
