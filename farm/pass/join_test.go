package pass

import (
	"crypto/sha256"
	"net"
	"os"
	"path/filepath"
	"testing"

	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestJoinLooksFirst spends no token where no pass can be kept: the farm is not asked.
func TestJoinLooksFirst(t *testing.T) {
	farm := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer farm.Close()
	asked := make(chan bool, 1)
	go func() {
		if c, err := farm.Accept(); err == nil {
			asked <- true
			_ = c.Close()
		}
	}()
	file := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	token := NewToken(farm.Addr().String(), sha256.Sum256([]byte("authority"))).String()
	for what, dir := range map[string]string{"no folder can be made there": filepath.Join(os.DevNull, "farm"),
		"a file is in the way": file, "a file is above": filepath.Join(file, "farm")} {
		if _, err := Join(t.Context(), token, "gpu1", dir, false); err == nil || fault.ExitCode(err) == 1 {
			t.Errorf("%s: %v, exit code %d", what, err, fault.ExitCode(err))
		}
	}
	folder := t.TempDir()
	must.Do(t, os.Chmod(folder, 0o500))
	if f, err := os.CreateTemp(folder, ""); err == nil { // root may write everywhere
		_ = f.Close()
		folder = "/proc"
	}
	if _, err := Join(t.Context(), token, "gpu1", filepath.Join(folder, "new", "farm"), false); err == nil {
		t.Error("a folder that nobody can write to")
	}
	select {
	case <-asked:
		t.Fatal("the farm was asked")
	default:
	}
	if _, err := Join(t.Context(), token, "gpu1", filepath.Join(t.TempDir(), "farm"), false); err == nil || !<-asked {
		t.Errorf("a folder that can be written to: %v", err)
	}
}
