package desk

import (
	"net/http"
	"strings"
	"testing"
)

// TestNames refuses names of runs and folders that some system has not, and takes others as they are.
func TestNames(t *testing.T) {
	b := openDesk(t)
	for _, c := range []struct{ name, body, want string }{
		{"train", strings.Replace(train, `"name":""`, `"name":"CON"`, 1), "device on Windows"},
		{"train", strings.Replace(train, `"name":""`, `"name":".."`, 1), "another folder"},
		{"upload?file=a.jpg&folder=", "", "is empty"},
		{"upload?file=a.jpg&folder=a%2Fb", "", "slash"},
		{"upload?file=a.jpg&folder=x.", "", "with a dot"},
		{"upload?file=a.jpg&folder=" + strings.Repeat("x", 121), "", "takes 121 bytes, 120 is the limit"},
	} {
		status, text := b.ask(http.MethodPost, c.name, c.body, nil)
		if status != 400 || !strings.Contains(text, c.want) || strings.Contains(text, `"hint":""`) {
			t.Errorf("%s %s: %d %s", c.name, c.body, status, text)
		}
	}
	for _, path := range []string{"../x", "none", strings.Repeat("x", 300), "/etc", "a%00b"} {
		if status, text := b.ask(http.MethodGet, "folder?path="+path, "", nil); status != 400 ||
			strings.Contains(text, `"hint":""`) {
			t.Errorf("folder %.20s: %d %s", path, status, text)
		}
	}
	id := b.begin("train", strings.Replace(train, `"name":""`, `"name":"My walk"`, 1))
	if j := b.queue.find(id); j.Made != "vksplat/runs/My walk" {
		t.Errorf("the run is %s", j.Made)
	}
}
