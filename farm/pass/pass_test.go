package pass

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// A token comes back as it was, and one that was copied in part, or typed wrong, is told.
func TestToken(t *testing.T) {
	want := NewToken("farm.example:7233", sha256.Sum256([]byte("authority")))
	text := want.String()
	got, err := ParseToken(" " + text + "\n")
	if err != nil || got != want || got.ID() != want.ID() {
		t.Errorf("%+v, %v", got, err)
	}
	if other := NewToken(want.Address, want.CA); other.ID() == want.ID() || other.String() == text {
		t.Error("two tokens are one")
	}
	if strings.Contains(text, want.ID()) {
		t.Error("the id is in the token")
	}
	for i := range text {
		if _, err := ParseToken(text[:i]); err == nil {
			t.Fatalf("the first %d characters are a token", i)
		}
		typed := []byte(text)
		typed[i] = 'A' + (typed[i]-'A'+1)%26
		if string(typed) == text {
			continue
		}
		if got, err := ParseToken(string(typed)); err == nil && got != want {
			t.Fatalf("character %d typed wrong gives %+v", i, got)
		}
	}
	for _, bad := range []string{"", "vksfarm1-", "http://farm", Token{}.String()} {
		if _, err := ParseToken(bad); fault.ExitCode(err) != fault.ExitUsage {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// Names are words that can be parts of file names, ids and queues.
func TestNames(t *testing.T) {
	for name, is := range map[string]bool{"a": true, "gpu-1": true, "b.c_d": true, "internal": false, "": false,
		"A":  false,
		"-a": false, "a.": false, "a/b": false, "a b": false, "..": false, "ä": false, "a'": false,
		strings.Repeat("a", 63): true, strings.Repeat("a", 64): false} {
		if IsName(name) != is {
			t.Errorf("%q", name)
		}
	}
	if !IsName(machineName()) {
		t.Errorf("this machine is %q", machineName())
	}
}

// A key that others can read is refused, with what closes it.
func TestOpenKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes")
	}
	dir := t.TempDir()
	key := filepath.Join(dir, keyFile)
	must.Do(t, os.WriteFile(key, nil, 0o600))
	for mode, open := range map[os.FileMode]bool{0o644: true, 0o640: true, 0o604: true, 0o600: false, 0o400: false} {
		must.Do(t, os.Chmod(key, mode))
		_, err := Load(dir) // there is nothing else of a pass
		if fault.ExitCode(err) != fault.ExitSetup || strings.Contains(fault.Hint(err), "chmod 600") != open {
			t.Errorf("mode %o: %v (%s)", mode, err, fault.Hint(err))
		}
	}
}

// A machine without a pass, or with a damaged one, is told what to do.
func TestLoadErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Load(filepath.Join(dir, "none"))
	if fault.ExitCode(err) != fault.ExitSetup || !strings.Contains(fault.Hint(err), "farm join") {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, farmFile), []byte("{"), 0o600))
	if _, err := Load(dir); fault.ExitCode(err) != fault.ExitSetup || !strings.Contains(fault.Hint(err),
		"join the farm again") {
		t.Errorf("%v (%s)", err, fault.Hint(err))
	}
	join := func(dir string, replace bool) error {
		_, err := Join(t.Context(), NewToken("127.0.0.1:1", [32]byte{}).String(), "x", dir, replace)
		return err
	}
	if err := join(dir, false); fault.ExitCode(err) != fault.ExitUsage || !strings.Contains(fault.Hint(err),
		"overwrite") {
		t.Errorf("a folder with a pass: %v (%s)", err, fault.Hint(err))
	}
	if err := join(dir, true); fault.ExitCode(err) != fault.ExitTryAgain { // nobody serves there
		t.Errorf("a pass that may be replaced: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, farmFile)); err != nil {
		t.Error("the pass went before another one was there")
	}
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	for _, other := range []string{file, filepath.Dir(file)} {
		if err := join(other, true); fault.ExitCode(err) != fault.ExitUsage {
			t.Errorf("%s, which is not a pass: %v", other, err)
		}
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("a file was removed")
	}
}
