package store

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"vksplat/farm/store/s3test"
	"vksplat/internal/fault"
	must "vksplat/internal/musttest"
)

// TestReady tells servers whose conditions of writes count from others.
func TestReady(t *testing.T) {
	onBuckets(t, func(t *testing.T, b *bucket) {
		if err := b.Ready("j/t"); err != nil {
			t.Error(err)
		}
		if b.Delete("j") != nil || second(b.Stat("j")) == nil {
			t.Error("the probe is left behind")
		}
	})
	s := newServer(t)
	b := newBucketOf(t, s)
	s.Unconditional = true
	if err := b.Ready("j/t"); !errors.Is(err, ErrSetup) || fault.Hint(err) == "" || len(s.Keys()) > 0 {
		t.Errorf("%v, %q", err, s.Keys())
	}
	s.Unconditional, s.Denied = false, true
	if err := b.Ready("j/t"); !errors.Is(err, ErrSetup) {
		t.Error(err)
	}
}

// TestComplaints has everything be wrong that people get wrong: each with its own hint, and never with a secret.
func TestComplaints(t *testing.T) {
	s := newServer(t)
	t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	t.Setenv("AWS_SECRET_ACCESS_KEY", s3test.Secret)
	yes := true
	good := Options{URL: "s3://lab/x", Endpoint: s.URL}
	for _, c := range []struct {
		change func(*Options)
		says   string
	}{
		{func(o *Options) { o.URL = "s3://other/x" }, "no such bucket"},
		{func(o *Options) { s.Denied = true }, "access is denied"},
		{func(o *Options) { s.Region = "eu-west-3" }, "another region"},
		{func(o *Options) { s.Skew = time.Hour }, "clocks"},
		{func(o *Options) { t.Setenv("AWS_ACCESS_KEY_ID", "nobody") }, "rejects the credentials"},
		{func(o *Options) {
			t.Setenv("AWS_ACCESS_KEY_ID", "")
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
		}, "no credentials were found"},
		{func(o *Options) { o.URL = "s3://" + s3test.Access + ":" + s3test.Secret + "@lab/x" }, "must not contain credentials"},
		{func(o *Options) { o.URL = "s3://" + s3test.Access + ":" + s3test.Secret + "%zz@lab/x" }, "cannot parse the url"},
		{func(o *Options) { o.URL = "s3://L/x" }, "not a bucket name"},
		{func(o *Options) { o.URL = "s3:///x" }, "not a bucket name"},
		{func(o *Options) { o.URL = "s3://lab/../x" }, "not a prefix"},
		{func(o *Options) { o.URL = "s3://lab:9000/x" }, "no bucket or no prefix"},
		{func(o *Options) { o.URL = "s3://lab/x?y" }, "no bucket or no prefix"},
		{func(o *Options) { o.Umask = "0002" }, "apply to folders only"},
		{func(o *Options) { o.Mark = ".mounted" }, "to folders only"},
		{func(o *Options) { o.Endpoint = "minio.lab:9000" }, "not a server address"},
		{func(o *Options) { o.Endpoint = "ftp://minio.lab" }, "not a server address"},
		{func(o *Options) { o.Endpoint = "http://a:b@minio.lab" }, "not a server address"},
		{func(o *Options) { o.CA = "/nowhere" }, "no such file"},
		{func(o *Options) { o.Credentials = "/nowhere" }, "no such file"},
		{func(o *Options) { *o = Options{URL: t.TempDir(), PathStyle: &yes} }, "apply to buckets only"},
	} {
		o := good
		c.change(&o)
		_, err := Open(o)
		if !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), c.says) || fault.Hint(err) == "" ||
			strings.Contains(err.Error()+fault.Hint(err), s3test.Secret) {
			t.Errorf("want %q: %v (%s)", c.says, err, fault.Hint(err))
		}
		s.Denied, s.Region, s.Skew = false, "", 0
		t.Setenv("AWS_ACCESS_KEY_ID", s3test.Access)
	}
	s.Region = "eu-west-3"
	if _, err := Open(good); !strings.Contains(fault.Hint(err), `"eu-west-3"`) {
		t.Errorf("the region is not named: %s", fault.Hint(err))
	}
	good.Region, good.PathStyle = "eu-west-3", &yes
	if _, err := Open(good); err != nil {
		t.Error(err)
	}
}

// TestCredentialFiles has keys come from files, and not from one that others may read; and a server that is trusted by
// its certificate alone.
func TestCredentialFiles(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY"} {
		t.Setenv(name, "")
	}
	file := filepath.Join(t.TempDir(), "keys")
	text := "[default]\naws_access_key_id = nobody\naws_secret_access_key = x\n[lab]\naws_access_key_id = " +
		s3test.Access + "\naws_secret_access_key = " + s3test.Secret + "\n"
	must.Do(t, os.WriteFile(file, []byte(text), 0o600))
	o := Options{URL: "s3://lab", Endpoint: s.URL, Credentials: file, Profile: "lab"}
	if r, err := Open(o); err != nil || !strings.HasSuffix(r.String(), "/lab") {
		t.Error(r, err)
	}
	o.Profile = ""
	if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "rejects the credentials") {
		t.Error(err)
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	if _, err := Open(Options{URL: "s3://lab", Endpoint: s.URL, Profile: "lab"}); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		must.Do(t, os.Chmod(file, 0o644))
		if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "others may read") {
			t.Error(err)
		}
	}
	o.Profile = "lba"
	_ = os.Chmod(file, 0o600)
	if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), `profile "lba"`) ||
		!strings.Contains(fault.Hint(err), "[lba] in "+file) {
		t.Error(err, fault.Hint(err))
	}
	t.Setenv("AWS_PROFILE", "lab")
	secure := httptest.NewTLSServer(s)
	defer secure.Close()
	secure.Config.ErrorLog = nil
	o = Options{URL: "s3://lab", Endpoint: secure.URL}
	if _, err := Open(o); !errors.Is(err, ErrSetup) || !strings.Contains(err.Error(), "cannot be trusted") {
		t.Error(err)
	}
	for endpoint, want := range map[string]string{
		strings.Replace(s.URL, "http:", "https:", 1):      "the endpoint says https, the server speaks http",
		strings.Replace(secure.URL, "https:", "http:", 1): "the endpoint says http, the server speaks https",
	} {
		began := time.Now()
		if _, err := Open(Options{URL: "s3://lab", Endpoint: endpoint}); !errors.Is(err, ErrSetup) ||
			!strings.Contains(err.Error(), want) || time.Since(began) > 5*time.Second {
			t.Error(endpoint, err, time.Since(began))
		}
	}
	o.CA = filepath.Join(t.TempDir(), "ca.pem")
	must.Do(t, os.WriteFile(o.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}),
		0o666))
	r := must.Get(Open(o))(t)
	putText(t, r, "a", "x")
	if !slices.Equal(s.Keys(), []string{"a"}) {
		t.Errorf("%q", s.Keys())
	}
}

// TestCredentialsAreRenewed has a token expire before the time that it was given with, and another one be had, while a
// root is open: each operation takes it.
func TestCredentialsAreRenewed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the program that says credentials is cat")
	}
	s := newServer(t)
	file, said := filepath.Join(t.TempDir(), "keys"), filepath.Join(t.TempDir(), "said")
	must.Do(t, os.WriteFile(file, []byte("[default]\ncredential_process = cat "+said+"\n"), 0o600))
	valid := ""
	s.SetFault(func(w http.ResponseWriter, r *http.Request) bool {
		expired := r.Header.Get("X-Amz-Security-Token") != valid
		if expired {
			s3test.Fail(w, http.StatusBadRequest, "ExpiredToken")
		}
		return expired
	})
	renew := func(token string) {
		t.Helper()
		text := fmt.Sprintf(`{"Version":1,"AccessKeyId":%q,"SecretAccessKey":%q,"SessionToken":%q,"Expiration":"2999-01-01T00:00:00Z"}`, s3test.Access, s3test.Secret, token)
		must.Do(t, os.WriteFile(said, []byte(text), 0o600))
	}
	valid = "first"
	renew(valid)
	b := openTest(t, Options{URL: "s3://lab", Endpoint: s.URL, Credentials: file})
	b.part = 1000
	put := func(key, text string) func() error {
		return func() error {
			return b.Put(key, func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		}
	}
	for name, do := range map[string]func() error{
		"put":    put("there", "x"),
		"upload": put("large", pattern(3500)),
		"stat":   func() error { return second(b.Stat("there")) },
		"list":   func() error { return third(b.List(".")) },
		"open":   func() error { return second(b.Open("there")) },
		"ready":  func() error { return b.Ready("j/t") },
		"delete": func() error { return b.Delete("large") },
	} {
		valid = name
		renew(name)
		must.Do(t, put("there", "x")())
		valid = "new for " + name
		if err := do(); !errors.Is(err, ErrSetup) || fault.Hint(err) == "" {
			t.Errorf("%s with a token that has expired for good: %v", name, err)
		}
		renew(valid)
		if err := do(); err != nil {
			t.Errorf("%s with a new token: %v", name, err)
		}
	}
}
