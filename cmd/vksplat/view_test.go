package main

import (
	"bytes"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
	"vksplat/scene"
	"vksplat/scene/ply"
	"vksplat/scene/ply/plytest"
)

// TestViewPortInUse wants a port that is taken told at once, with its number and a remedy.
func TestViewPortInUse(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close() // the test is over
	model := filepath.Join(t.TempDir(), "model.ply")
	s := scene.NewSplats(1, 0)
	s.Quats[0] = 1
	must.Do(t, plytest.Write(model, s, ply.Meta{}))
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var stdout, stderr bytes.Buffer
	code := run([]string{"view", model, "--no-open", "--port", port}, &stdout, &stderr)
	if code != fault.ExitTryAgain || stdout.Len() > 0 || !strings.Contains(stderr.String(), "127.0.0.1:"+port+
		": address already in use") || !strings.Contains(stderr.String(), "hint: name another port") {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
}
