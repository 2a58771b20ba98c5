// Package playtest lets tests drive a headless browser, by scripts in Python that use Playwright. Run skips the test
// where Chromium or Playwright is missing; VKSPLAT_CHROMIUM and VKSPLAT_PYTHON name others than those in PATH. Enter
// needs neither.
package playtest

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	must "vksplat/internal/musttest"
)

// shared is imported by all scripts, as browser.
//
//go:embed browser.py
var shared []byte

// Run gives a script its task as JSON, with the path of a browser as "chromium", and reads the log that it prints. It
// skips the test where there is no browser or no Playwright.
func Run(t testing.TB, script string, task map[string]any, log any) {
	t.Helper()
	for _, name := range []string{os.Getenv("VKSPLAT_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil && task["chromium"] == nil {
			task["chromium"] = path
		}
	}
	if task["chromium"] == nil {
		t.Skip("no chromium; VKSPLAT_CHROMIUM names one")
	}
	python := os.Getenv("VKSPLAT_PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "from playwright.sync_api import sync_playwright").Run(); err != nil {
		if os.Getenv("VKSPLAT_PACKAGES") == "1" {
			t.Fatal("the packages were installed and cannot be used")
		}
		t.Skip("no Python with the package playwright; VKSPLAT_PYTHON names one")
	}
	dir := t.TempDir()
	text, err := json.Marshal(task)
	must.Do(t, errors.Join(err, os.WriteFile(filepath.Join(dir, "browser.py"), shared, 0o666)))
	cmd := exec.Command(python, script)
	cmd.Stdin = bytes.NewReader(text)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, exit.Stderr)
	}
	must.Do(t, errors.Join(err, json.Unmarshal(out, log)))
}

// Visit opens the page at an address as a browser does: client has its cookie, and at is where the page is.
func Visit(address string) (client *http.Client, at *url.URL, err error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, nil, err
	}
	client = &http.Client{Jar: jar}
	answer, err := client.Get(address)
	if err != nil {
		return nil, nil, err
	}
	body, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	place := regexp.MustCompile(`url=([^"]+)"`).FindSubmatch(body)
	if err != nil || place == nil {
		return nil, nil, fmt.Errorf("%s: %s, %v", answer.Status, body, err)
	}
	if at, err = url.Parse(address); err != nil {
		return nil, nil, err
	}
	return client, at.ResolveReference(&url.URL{Path: string(place[1])}), nil
}

// Enter opens the page at an address, and then its WebSocket.
func Enter(ctx context.Context, address string) (*websocket.Conn, error) {
	client, at, err := Visit(address)
	if err != nil {
		return nil, err
	}
	return Watch(ctx, client, at)
}

// Watch opens the WebSocket of a page that was visited.
func Watch(ctx context.Context, client *http.Client, at *url.URL) (*websocket.Conn, error) {
	c, _, err := websocket.Dial(ctx, at.JoinPath("watch").String(), &websocket.DialOptions{HTTPClient: client})
	if err == nil {
		c.SetReadLimit(1 << 24)
	}
	return c, err
}

// Post sends JSON as the page does, and returns the answer.
func Post(client *http.Client, at *url.URL, name, body string) (status int, text string, err error) {
	r, err := http.NewRequest(http.MethodPost, at.JoinPath(name).String(), strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", at.Scheme+"://"+at.Host)
	answer, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close() // only read
	data, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(data), err
}
