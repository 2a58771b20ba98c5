//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"vksplat/farm/store/s3test"
)

// servers are the servers of objects of scripts, by the folder of each.
var servers sync.Map

// cmdBucket is "bucket start": starts a server of objects and writes roots.toml, whose roots inputs and outputs are on
// it, and a file of credentials. "bucket up DIR KEY" puts the files of a folder there. "bucket down PATTERN FILE"
// fetches the object of that pattern. "[!] bucket has PATTERN" looks for objects, and "[!] bucket says TEXT" for a text
// in any. "bucket killed PATTERN COMMAND..." starts a command and kills it, as kill -9 does, once there is an object.
func cmdBucket(ts *testscript.TestScript, neg bool, args []string) {
	dir := ts.MkAbs(".")
	if args[0] == "start" {
		s := s3test.New("lab")
		servers.Store(dir, s)
		ts.Defer(s.Close)
		keys := filepath.Join(dir, "keys")
		ts.Check(os.WriteFile(keys,
			fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", s3test.Access,
				s3test.Secret), 0o600))
		text := ""
		for name, at := range map[string]string{"inputs": "scans", "outputs": "results"} {
			text += fmt.Sprintf("[%s]\nurl = \"s3://lab/%s\"\nendpoint = %q\ncredentials = %q\n", name, at, s.URL, keys)
		}
		ts.Check(os.WriteFile(filepath.Join(dir, "roots.toml"), []byte(text), 0o600))
		return
	}
	value, started := servers.Load(dir)
	if !started {
		ts.Fatalf("there is no server: bucket start")
	}
	s := value.(*s3test.Server)
	switch args[0] {
	case "up":
		from := ts.MkAbs(args[1])
		ts.Check(filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			data, err := os.ReadFile(name)
			s.Store(path.Join(args[2], filepath.ToSlash(strings.TrimPrefix(name, from))), data)
			return err
		}))
	case "down":
		keys := objects(s, args[1])
		if len(keys) != 1 {
			ts.Fatalf("%q is of %q, of %q", args[1], keys, s.Keys())
		}
		ts.Check(os.WriteFile(ts.MkAbs(args[2]), s.Load(keys[0]), 0o666))
	case "has":
		if keys := objects(s, args[1]); len(keys) > 0 == neg {
			ts.Fatalf("%q is of %q, of %q", args[1], keys, s.Keys())
		}
	case "says":
		found := false
		for _, key := range s.Keys() {
			found = found || strings.Contains(string(s.Load(key)), args[1])
		}
		if found == neg {
			ts.Fatalf("that an object says %q is %v", args[1], found)
		}
	case "killed":
		ts.Check(killOnce(ts, s, args[1], args[2:]))
	default:
		ts.Fatalf("there is no bucket %s", args[0])
	}
}

func objects(s *s3test.Server, pattern string) (keys []string) {
	fits := regexp.MustCompile(pattern)
	for _, key := range s.Keys() {
		if fits.MatchString(key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func killOnce(ts *testscript.TestScript, s *s3test.Server, pattern string, command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = environment(ts)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for len(objects(s, pattern)) == 0 {
		select {
		case err := <-done:
			return fmt.Errorf("the command ended before there was %s: %w", pattern, err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	err := cmd.Process.Kill()
	<-done // it was killed
	return err
}
