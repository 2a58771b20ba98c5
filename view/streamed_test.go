package view

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	must "vksplat/internal/musttest"
	"vksplat/scene/splatfile"
	"vksplat/view/playtest"
)

// streamedCopy writes a model as a streamed one of two levels beside it.
func streamedCopy(t *testing.T, path, name string) string {
	t.Helper()
	m, err := splatfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(filepath.Dir(path), name)
	_, err = splatfile.ByName(name).Write(to, m, splatfile.WriteOptions{Levels: 2})
	must.Do(t, errors.Join(err, m.Close()))
	return to
}

// TestServeStreamed wants all files of a streamed model, and nothing else that lies in its folder, whether it is a
// folder or an archive.
func TestServeStreamed(t *testing.T) {
	path := testModel(t, 100)
	var first []byte
	for _, name := range []string{"lod-meta.json", "city.ssog"} {
		file := streamedCopy(t, path, name)
		m, err := Prepare(file, t.TempDir(), false)
		if err != nil {
			t.Fatal(err)
		}
		if m.Converted || m.Splats != 100 || len(m.Positions) != 50 || m.name != "model/lod-meta.json" {
			t.Errorf("%s: %d splats, %d positions, %s", name, m.Splats, len(m.Positions), m.name)
		}
		s := serve(t, ServerOptions{}, Scene{Title: "city"}, m)
		client, at, err := playtest.Visit(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		get := func(name string) (int, []byte) {
			answer := must.Get(client.Get(at.JoinPath(name).String()))(t)
			defer answer.Body.Close()
			data := must.Get(io.ReadAll(answer.Body))(t)
			return answer.StatusCode, data
		}
		var all []byte
		for _, part := range m.parts.Names {
			status, data := get("model/" + part)
			if status != http.StatusOK || len(data) == 0 {
				t.Errorf("%s: %d, %d bytes", part, status, len(data))
			}
			all = append(all, data...)
		}
		if first == nil {
			first = all
		} else if string(first) != string(all) {
			t.Error("the archive has other parts than the folder")
		}
		for _, other := range []string{"model/model.ply", "model.ply", "model/../model.ply", "model/city.ssog"} {
			if status, _ := get(other); status != http.StatusNotFound {
				t.Errorf("%s: %d", other, status)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	page, err := Prepare(filepath.Join(filepath.Dir(path), "city.ssog"), t.TempDir(), true)
	if err != nil || !page.Converted || !strings.HasSuffix(page.path, ".ply") || page.Close() != nil {
		t.Errorf("a page of its own: %+v, %v", page, err)
	}
}

// TestServeStreamedNames wants a streamed model to be served whatever its files are called, and no more of an archive
// than it has bytes.
func TestServeStreamedNames(t *testing.T) {
	file := streamedCopy(t, testModel(t, 100), "lod-meta.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(file)
	text = []byte(strings.Replace(string(text), `"0_0/meta.json"`, `"./a b/meta"`, 1))
	must.Do(t, errors.Join(os.Rename(filepath.Join(dir, "0_0"), filepath.Join(dir, "a b")),
		os.Rename(filepath.Join(dir, "a b", "meta.json"), filepath.Join(dir, "a b", "meta")),
		os.Rename(file, filepath.Join(dir, "city.json")),
		os.WriteFile(filepath.Join(dir, "city.json"), text, 0o600)))
	m := must.Get(Prepare(filepath.Join(dir, "city.json"), t.TempDir(), false))(t)
	defer m.Close()
	s := serve(t, ServerOptions{}, Scene{Title: "city"}, m)
	client, at, err := playtest.Visit(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"model/lod-meta.json", "model/a b/meta", "model/1_0/meta.json"} {
		answer := must.Get(client.Get(at.JoinPath(name).String()))(t)
		if answer.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, answer.Status)
		}
		_ = answer.Body.Close()
	}
}

// TestServeStreamedDamaged wants to hear of parts that are missing before a browser asks.
func TestServeStreamedDamaged(t *testing.T) {
	file := streamedCopy(t, testModel(t, 100), "lod-meta.json")
	must.Do(t, os.Remove(filepath.Join(filepath.Dir(file), "0_0", "meta.json")))
	if _, err := Prepare(file, t.TempDir(), false); err == nil || !strings.Contains(err.Error(), "0_0") {
		t.Errorf("error %v", err)
	}
}
