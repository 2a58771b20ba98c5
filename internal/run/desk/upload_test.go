package desk

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	must "vksplat/internal/musttest"
	"vksplat/internal/run/output"
)

// uploading sends the head of an upload of so many bytes, or of an unknown number, and returns the connection.
func (b *tested) uploading(query string, size int64) net.Conn {
	b.t.Helper()
	u, err := url.Parse(b.base)
	if err != nil {
		b.t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	length := fmt.Sprintf("Content-Length: %d", size)
	if size < 0 {
		length = "Transfer-Encoding: chunked"
	}
	const head = "POST %supload?%s HTTP/1.1\r\n" +
		"Host: %s\r\nOrigin: http://%s\r\nCookie: %s\r\n%s\r\n\r\n"
	_, err = fmt.Fprintf(c, head, u.Path, query, u.Host, u.Host, strings.Split(b.cookie, ";")[0], length)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// answered reads the status of an answer to what may be half a request.
func (b *tested) answered(c net.Conn) int {
	b.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		b.t.Fatal(err)
	}
	answer, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	answer.Body.Close()
	return answer.StatusCode
}

// TestUpload stores what is dropped on the page, within its bounds, and replaces nothing.
func TestUpload(t *testing.T) {
	b := openDesk(t)
	if status, text := b.ask("POST", "upload?folder=trip&file=a.mp4", "film", nil); status != 200 ||
		!strings.Contains(text, "vksplat/uploads/trip") {
		t.Errorf("%d %s", status, text)
	}
	for _, c := range []struct {
		what, query, body string
		want              int
	}{
		{"again", "folder=trip&file=a.mp4", "other", 409},
		{"no photo", "folder=trip&file=a.sh", "film", 400},
		{"no name", "folder=trip&file=", "film", 400},
		{"no folder", "folder=..&file=b.mp4", "film", 400},
		{"a path", "folder=../../trip&file=c.jpg", "photo", 400},
		{"too large", "folder=trip&file=b.mp4", strings.Repeat("x", 101), 413},
		{"too large together", "folder=trip&file=b.mp4", strings.Repeat("x", 97), 413},
		{"a path of a file", "folder=trip&file=../c.jpg", "photo", 200},
	} {
		if status, text := b.ask("POST", "upload?"+c.query, c.body, nil); status != c.want {
			t.Errorf("%s: %d %s, want %d", c.what, status, text, c.want)
		}
	}
	entries, err := os.ReadDir(filepath.Join(b.root, "vksplat/uploads/trip"))
	if err != nil || len(entries) != 2 || entries[0].Name() != "a.mp4" || entries[1].Name() != "c.jpg" {
		t.Errorf("%v, %v", entries, err)
	}
	data, err := os.ReadFile(filepath.Join(b.root, "vksplat/uploads/trip/a.mp4"))
	if err != nil || string(data) != "film" {
		t.Errorf("%q, %v", data, err)
	}
	for query, want := range map[string]int{"folder=trip&bytes=91&files=1": 200, "folder=trip&bytes=92&files=1": 413,
		"folder=new&bytes=100&files=5000": 200, "folder=new&bytes=1&files=5001": 413,
		"folder=new&bytes=-1&files=1": 400, "folder=new&bytes=&files=": 400, "folder=..&bytes=1&files=1": 400} {
		if status, text := b.ask("GET", "room?"+query, "", nil); status != want {
			t.Errorf("room for %s: %d %s, want %d", query, status, text, want)
		}
	}
}

// TestUploadEarly refuses before the body comes, and leaves no folder behind.
func TestUploadEarly(t *testing.T) {
	b := openDesk(t)
	if got := b.answered(b.uploading("folder=trip&file=a.mp4", 101)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a file beyond the bound: %d", got)
	}
	if got := b.answered(b.uploading("folder=trip&file=a.mp4", -1)); got != http.StatusLengthRequired {
		t.Errorf("a file of unknown length: %d", got)
	}
	vast := openDesk(t, func(d *desk) { d.uploads.most = 1 << 62 })
	if got := vast.answered(vast.uploading("folder=trip&file=a.mp4", 1<<60)); got != http.StatusInsufficientStorage {
		t.Errorf("a file beyond the disk: %d", got)
	}
	for _, d := range []*tested{b, vast} {
		if _, err := os.Lstat(filepath.Join(d.root, dataFolder)); err == nil {
			t.Error("a refused upload leaves a folder")
		}
	}
}

// TestUploadBroken has an upload break off: its folder goes. While it comes in, it counts, and no other takes its name.
func TestUploadBroken(t *testing.T) {
	b := openDesk(t)
	c := b.uploading("folder=trip&file=a.mp4", 60)
	must.Get(c.Write([]byte("half")))(t)
	dir := filepath.Join(b.root, "vksplat/uploads/trip")
	b.until("it comes in", func(*seenState) bool { return output.IsFolder(dir) })
	if got := b.answered(b.uploading("folder=trip&file=a.mp4", 1)); got != http.StatusConflict {
		t.Errorf("the same name: %d", got)
	}
	if got := b.answered(b.uploading("folder=trip&file=b.mp4", 60)); got != http.StatusRequestEntityTooLarge {
		t.Errorf("more than fits together: %d", got)
	}
	must.Do(t, c.Close())
	b.until("its folder goes", func(*seenState) bool { return !output.IsFolder(filepath.Join(b.root, dataFolder)) })
	if status, text := b.ask("POST", "upload?folder=trip&file=a.mp4", strings.Repeat("x", 60), nil); status != 200 {
		t.Errorf("the next try: %d %s", status, text)
	}
}
