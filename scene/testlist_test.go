package scene

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

func TestHoldOut(t *testing.T) {
	c := &Capture{Cameras: []Camera{{Name: "a/1.jpg"}, {Name: "a/2.jpg"}, {Name: "b/1.jpg/0", Photo: "b/1.jpg"},
		{Name: "b/1.jpg/1", Photo: "b/1.jpg"}}}
	file := filepath.Join(t.TempDir(), "list.txt")
	must.Do(t, os.WriteFile(file, []byte("\xef\xbb\xbfb/1.jpg\r\n\n  a/2.jpg  \n"), 0o666))
	names, err := ReadTestList(file)
	if err != nil || !slices.Equal(names, []string{"b/1.jpg", "a/2.jpg"}) {
		t.Fatalf("%q, %v", names, err)
	}
	must.Do(t, c.HoldOut(file, names))
	if train, test := c.Split(2); !slices.Equal(train, []int{0}) || !slices.Equal(test, []int{1, 2, 3}) {
		t.Errorf("train %v, test %v", train, test)
	}
	if err := c.HoldOut(file, []string{"a/1.jpg", "A/1.jpg", "A/1.jpg"}); !errors.Is(err, fault.ErrData) ||
		!strings.Contains(err.Error(), "1 of 3 photos are not in the capture: A/1.jpg") {
		t.Errorf("unknown name: %v", err)
	}
	c.LeaveOut("a/3.jpg", true)
	if err := c.HoldOut(file, []string{"a/1.jpg", "a/3.jpg"}); !errors.Is(err, fault.ErrData) ||
		!strings.Contains(err.Error(), "1 of 2 photos are in the capture, but have no file that can be read, or no pose: a/3") {
		t.Errorf("a name of a photo that was left out: %v", err)
	}
	if err := c.HoldOut(file, []string{"a/1.jpg", "a/2.jpg", "b/1.jpg"}); !errors.Is(err, fault.ErrData) {
		t.Errorf("all names: %v", err)
	}
	if _, err := ReadTestList(filepath.Dir(file)); !errors.Is(err, fault.ErrData) {
		t.Errorf("a folder: %v", err)
	}
	must.Do(t, os.WriteFile(file, []byte(" \n\t\n"), 0o666))
	if _, err := ReadTestList(file); !errors.Is(err, fault.ErrData) {
		t.Errorf("an empty list: %v", err)
	}
}
