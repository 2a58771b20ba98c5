package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"vksplat/farm/pass"
	"vksplat/internal/fault"
)

func newRegistry(t *testing.T) *Registry {
	t.Helper()
	dir := t.TempDir()
	if Exists(dir) {
		t.Fatal("an empty folder is a farm")
	}
	if err := Create(dir); err != nil {
		t.Fatal(err)
	}
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func newCSR(t *testing.T, curve elliptic.Curve) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func (r *Registry) mustToken(t *testing.T, who pass.Who) []byte {
	t.Helper()
	token, err := r.NewToken("host:1", Grant{Who: who, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	return token.Secret[:]
}

// Of many that come at once with one token, or for one name, one becomes a member; the token of one that came too
// late for a name is still good.
func TestJoinOnce(t *testing.T) {
	r := newRegistry(t)
	view := pass.Who{Name: "wall", Role: pass.View}
	one, many := r.mustToken(t, view), [][]byte{}
	for range 8 {
		many = append(many, r.mustToken(t, pass.Who{Role: pass.View}))
	}
	joined := func(secret func(i int) []byte, name string) (n int) {
		var mu sync.Mutex
		var all sync.WaitGroup
		for i := range 8 {
			csr := newCSR(t, elliptic.P256())
			all.Go(func() {
				if _, err := r.Join(secret(i), name, csr); err == nil {
					mu.Lock()
					defer mu.Unlock()
					n++
				}
			})
		}
		all.Wait()
		return n
	}
	if n := joined(func(int) []byte { return one }, ""); n != 1 {
		t.Errorf("%d joined with one token", n)
	}
	if n := joined(func(i int) []byte { return many[i] }, "desk"); n != 1 {
		t.Errorf("%d joined as desk", n)
	}
	left := 0
	for i, secret := range many {
		if _, err := r.Join(secret, "desk"+string(rune('a'+i)), newCSR(t, elliptic.P256())); err == nil {
			left++
		}
	}
	if left != 7 {
		t.Errorf("%d of 7 tokens are still good", left)
	}
	if records, open, err := r.List(); len(records) != 9 || len(open) != 0 || err != nil {
		t.Errorf("%d passes, %d tokens, %v", len(records), len(open), err)
	}
}

// A certificate says what the token granted, whatever the request says, for a key of the form that is used.
func TestCertificate(t *testing.T) {
	r := newRegistry(t)
	who := pass.Who{Name: "gpu1", Role: pass.Worker, Pools: []string{"default", "big"}}
	cert, err := r.Join(r.mustToken(t, who), "root", newCSR(t, elliptic.P256()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := pass.Of(cert)
	if err != nil || got.Name != "gpu1" || got.Role != pass.Worker || !slices.Equal(got.Pools, who.Pools) ||
		got.Owner != "" {
		t.Errorf("%+v, %v", got, err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(r.CA())
	for _, usage := range []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: pool, KeyUsages: []x509.ExtKeyUsage{usage}})
		if client := usage == x509.ExtKeyUsageClientAuth; (err == nil) != client {
			t.Errorf("usage %d: %v", usage, err)
		}
	}
	renewed, err := r.Renew(got, newCSR(t, elliptic.P256()))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := pass.Of(renewed); err != nil || again.ID != got.ID || again.Name != got.Name {
		t.Errorf("renewed as %+v, %v", again, err)
	}
	for what, csr := range map[string][]byte{"P-384": newCSR(t, elliptic.P384()), "noise": []byte("x"),
		"nothing": nil} {
		if _, err := r.Join(r.mustToken(t, pass.Who{Role: pass.View}), "n", csr); err == nil {
			t.Errorf("a request with %s", what)
		}
	}
	for _, bad := range []pass.Who{
		{Name: "internal", Role: pass.View}, {Name: "x", Role: "internal"}, {Name: "a/b", Role: pass.View},
		{Name: "../x", Role: pass.View}, {Name: "x", Role: pass.Submit}, {Name: "x", Role: pass.Worker},
		{Name: "x", Role: pass.Worker, Pools: []string{"a/b"}}, {Name: "x", Role: pass.View, Owner: "anna"},
	} {
		if _, err := r.NewToken("host:1", Grant{Who: bad}); err == nil {
			t.Errorf("a token for %+v", bad)
		}
	}
}

// What was revoked stays revoked under its ID, and the name is free again. A damaged record hides no other.
func TestRevoke(t *testing.T) {
	r := newRegistry(t)
	var cert *x509.Certificate
	join := func() pass.Who {
		var err error
		cert, err = r.Join(r.mustToken(t, pass.Who{Name: "wall", Role: pass.View}), "", newCSR(t, elliptic.P256()))
		if err != nil {
			t.Fatal(err)
		}
		who, err := pass.Of(cert)
		if err != nil {
			t.Fatal(err)
		}
		return who
	}
	first := join()
	if r.Revoked(first.ID) {
		t.Error("revoked from the start")
	}
	if _, err := r.Revoke("wall"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Revoke("wall"); err == nil {
		t.Error("revoked twice")
	}
	second := join()
	if !r.Revoked(first.ID) || r.Revoked(second.ID) {
		t.Errorf("first revoked %v, second %v", r.Revoked(first.ID), r.Revoked(second.ID))
	}
	if err := r.Welcome(first, cert); err == nil {
		t.Error("a revoked pass is welcome")
	}
	if err := os.WriteFile(filepath.Join(r.dir, passes, "broken.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	records, _, err := r.List()
	if len(records) != 2 || err == nil || !strings.Contains(err.Error(), "broken.json") {
		t.Errorf("%d records, %v", len(records), err)
	}
	if info, err := os.Stat(filepath.Join(r.dir, caKeyFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the authority's key has mode %v, %v", info.Mode(), err)
	}
}

// TestLostAuthority keeps what passes were given from as it is, when the authority's certificate is gone.
func TestLostAuthority(t *testing.T) {
	r := newRegistry(t)
	token := r.mustToken(t, pass.Who{Name: "wall", Role: pass.View})
	if _, err := r.Join(token, "", newCSR(t, elliptic.P256())); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.dir, caFile)); err != nil {
		t.Fatal(err)
	}
	if !Exists(r.dir) {
		t.Error("serve would make a new farm of it")
	}
	if _, err := Open(r.dir); err == nil || !strings.Contains(fault.Hint(err), "backup") {
		t.Errorf("%v, hint: %s", err, fault.Hint(err))
	}
}

// TestRestored takes in passes that a registry does not know, as they were given after the backup that it comes from:
// they can be revoked then. Where another pass has got the name, the one that the registry knows keeps it. Tokens are
// in no backup.
func TestRestored(t *testing.T) {
	r := newRegistry(t)
	cert, err := r.Join(r.mustToken(t, pass.Who{Name: "gpu1", Role: pass.Worker, Pools: []string{"any"}}), "",
		newCSR(t, elliptic.P256()))
	if err != nil {
		t.Fatal(err)
	}
	who, err := pass.Of(cert)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(r.dir, passes, "gpu1.json")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if err := r.Welcome(who, cert); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	records, _, err := r.List()
	if err != nil || len(records) != 1 || records[0].ID != who.ID || !slices.Equal(records[0].Pools, who.Pools) ||
		!records[0].Expires.Equal(cert.NotAfter) {
		t.Errorf("%+v, %v", records, err)
	}
	if _, err := r.Revoke("gpu1"); err != nil || r.Welcome(who, cert) == nil {
		t.Errorf("revoked: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a revoked pass was taken in")
	}
	if err := os.Remove(filepath.Join(r.dir, revoked, who.ID+".json")); err != nil { // the backup is older
		t.Fatal(err)
	}
	token := r.mustToken(t, pass.Who{Name: "gpu1", Role: pass.View})
	if _, err := r.Join(token, "", newCSR(t, elliptic.P256())); err != nil {
		t.Fatal(err)
	}
	if err := r.Welcome(who, cert); err == nil {
		t.Error("two passes have one name")
	}
	if slices.Contains(Files, tokens) {
		t.Error("a backup has tokens, which may have been used since")
	}
	if err := os.RemoveAll(filepath.Join(r.dir, tokens)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.List(); err != nil {
		t.Error(err)
	}
	r.mustToken(t, pass.Who{Name: "wall", Role: pass.View})
}

// Pools are those of valid passes and open tokens, and the one that all farms have.
func TestHasPool(t *testing.T) {
	r := newRegistry(t)
	want := func(when string, pools ...string) {
		t.Helper()
		for _, name := range []string{"any", "big", "small", "made-up"} {
			if got := r.HasPool(name); got != slices.Contains(pools, name) {
				t.Errorf("%s: pool %s: %v", when, name, got)
			}
		}
	}
	want("in a new farm", "any")
	who := pass.Who{Name: "gpu1", Role: pass.Worker, Pools: []string{"big"}}
	secret := r.mustToken(t, who)
	want("with a token", "any", "big")
	if _, err := r.Join(secret, "", newCSR(t, elliptic.P256())); err != nil {
		t.Fatal(err)
	}
	r.mustToken(t, pass.Who{Role: pass.Worker, Pools: []string{"small"}})
	want("with a pass", "any", "big", "small")
	if _, err := r.Revoke("gpu1"); err != nil {
		t.Fatal(err)
	}
	want("after the pass was revoked", "any", "small")
}
