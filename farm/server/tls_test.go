package server

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
)

// TestOwnCertificate keeps the certificate from start to start, and makes another where it cannot be used: its key is another's, as where a process was killed between the
// two files, half of it is there, or its authority is not the one that tokens name.
func TestOwnCertificate(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	hosts := []string{"farm.lab"}
	made := func(dir string) string {
		t.Helper()
		pair, ca, err := ownCertificate(dir, hosts)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM([]byte(ca))
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: hosts[0]}); err != nil {
			t.Error(err)
		}
		return pair.Leaf.SerialNumber.String()
	}
	first := made(dir)
	if again := made(dir); again != first {
		t.Errorf("the certificate %s was made anew: %s", first, again)
	}
	made(other)
	put := func(name string, share float64) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(other, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data[:int(share*float64(len(data)))], 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("server.key", 1) // of another certificate
	if again := made(dir); again == first {
		t.Error("a key without its certificate was used")
	}
	put("server.pem", 0.5)
	made(dir)
	put("ca.key", 1)
	put("ca.pem", 1)
	made(dir)
}
