package pass

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
)

// maxReply bounds what is read of an answer, in bytes.
const maxReply = 1 << 16

// enrolTimeout bounds a request to join or renew.
const enrolTimeout = 30 * time.Second

// Join trades a token for a pass and writes it to a folder, this user's if dir is empty. The folder must be new, or
// with replace one of a pass, which goes once the new one is there. Where the token gives no name, name is used, else
// the machine's. The private key never leaves this machine.
func Join(ctx context.Context, token, name, dir string, replace bool) (*Pass, error) {
	t, err := ParseToken(token)
	if err != nil {
		return nil, err
	}
	if dir, err = orDefault(dir); err != nil {
		return nil, err
	}
	if err := free(dir, replace); err != nil {
		return nil, err
	}
	if name == "" {
		name = machineName()
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	tmp, err := prepare(dir, key) // before the token is used up
	if err != nil {
		return nil, atomicfile.WriteError("write pass", dir, err)
	}
	defer os.RemoveAll(tmp)
	reply, err := request(ctx, t.Address, JoinPath, t.trust(), key, Request{Secret: t.Secret[:], Name: name})
	if err != nil {
		return nil, err
	}
	if sha256.Sum256(reply.CA) != t.CA {
		return nil, fault.Data("join farm", t.Address, "", "the farm's certificate authority is not the token's")
	}
	if err := write(tmp, dir, reply, farm{t.Address, reply.Namespace,
		time.Now().UTC().Truncate(time.Second)}); err != nil {
		return nil, &fault.Error{Op: "write pass", Path: dir, Err: err, Kind: fault.ErrTryAgain,
			Hint: "the token is used up: ask the farm's administrator to revoke the new pass and make another token"}
	}
	return Load(dir)
}

// free refuses a folder that a pass cannot be written to. An empty one is as good as none.
func free(dir string, replace bool) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.IsDir() && os.Remove(dir) == nil {
		return nil
	}
	e := &fault.Error{Op: "join farm", Path: dir, Err: errors.New("not a pass folder"),
		Hint: "name another folder, with " + fault.Setting("pass"), Kind: fault.ErrUsage}
	if !Exists(dir) {
		return e
	}
	if !replace {
		e.Err = errors.New("there is a pass already")
		e.Hint = "replace it with " + fault.Setting("overwrite") + "; or keep it, and name a folder for the new one " +
			"with " + fault.Setting("pass")
		return e
	}
	return nil
}

// prepare makes the folder in which a pass is put together, beside the one that it becomes, with the key in it.
func prepare(dir string, key *ecdsa.PrivateKey) (tmp string, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if tmp, err = os.MkdirTemp(filepath.Dir(dir), ".farm-pass*"); err != nil {
		return "", err
	}
	if err := writePEM(filepath.Join(tmp, keyFile), pemKey, der); err != nil {
		return "", errors.Join(err, os.RemoveAll(tmp))
	}
	return tmp, nil
}

// write completes the folder of a pass and gives it its name, in place of another one: whole or not at all.
func write(tmp, dir string, reply *Reply, at farm) error {
	text, err := json.MarshalIndent(at, "", "  ")
	if err != nil {
		return err
	}
	if err := errors.Join(
		writePEM(filepath.Join(tmp, certFile), pemCertificate, reply.Certificate),
		writePEM(filepath.Join(tmp, caFile), pemCertificate, reply.CA),
		os.WriteFile(filepath.Join(tmp, farmFile), append(text, '\n'), 0o600),
	); err != nil {
		return err
	}
	old := tmp + ".old"
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(tmp, dir); err != nil {
		_ = os.Rename(old, dir) // if there was one; else it stays where it is
		return err
	}
	return errors.Join(os.RemoveAll(old), atomicfile.SyncDir(filepath.Dir(dir)))
}

// RenewIfDue extends the certificate where less than a third of its life is left. Connections that exist keep the old
// one, new ones show the new one. Workers call it once an hour, commands before they work.
func (p *Pass) RenewIfDue(ctx context.Context) error {
	leaf := p.cert.Load().Leaf
	if time.Until(leaf.NotAfter) > leaf.NotAfter.Sub(leaf.NotBefore)/3 {
		return nil
	}
	return p.Renew(ctx)
}

// Renew extends the certificate now, for the same key.
func (p *Pass) Renew(ctx context.Context) error {
	reply, err := request(ctx, p.Address, RenewPath, p.TLS.Clone(), p.key, Request{})
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(reply.Certificate)
	if err == nil {
		err = p.use(leaf)
	}
	if err != nil {
		return fault.Data("renew pass", p.Address, "", "%w", err)
	}
	return atomicfile.Write(filepath.Join(p.dir, certFile), func(w io.Writer) error {
		return pem.Encode(w, &pem.Block{Type: pemCertificate, Bytes: reply.Certificate})
	})
}

// trust accepts only the server whose authority has the token's hash.
func (t Token) trust() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// The usual check needs the authority's certificate, which the server sends: VerifyConnection does it
		// instead.
		InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			for _, cert := range state.PeerCertificates[1:] {
				if sha256.Sum256(cert.Raw) == t.CA {
					roots := x509.NewCertPool()
					roots.AddCert(cert)
					_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, DNSName: ServerName})
					return err
				}
			}
			return errors.New("the server is not the farm of this token")
		},
	}
}

// request asks for a certificate for a key.
func request(ctx context.Context, address, path string, config *tls.Config, key *ecdsa.PrivateKey, ask Request) (
	*Reply, error) {
	op := strings.TrimPrefix(path, "/") + " farm"
	csr, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		return nil, err
	}
	ask.CSR = csr
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	config.NextProtos = []string{EnrolProtocol}
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	client := &http.Client{Transport: transport, Timeout: enrolTimeout}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+path, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Usagef("", "%s: %v", op, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		hint := "does vksplat-farmd serve there, and does a firewall let its port through?"
		var invalid x509.CertificateInvalidError
		if errors.As(err, &invalid) && invalid.Reason == x509.Expired {
			hint = "set the clock of this machine, or of the farm's server"
		}
		return nil, &fault.Error{Op: op, Path: address, Err: errors.Unwrap(err), Kind: fault.ErrTryAgain, Hint: hint}
	}
	defer resp.Body.Close()
	reply := new(Reply)
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxReply)).Decode(reply); err != nil {
		return nil, fault.Data(op, address, "is this a farm's address?", "unreadable answer (%s)", resp.Status)
	}
	if reply.Error != "" {
		return nil, &fault.Error{Op: op, Path: address, Err: errors.New(reply.Error), Hint: reply.Hint,
			Kind: fault.ErrSetup}
	}
	return reply, nil
}

var otherSigns = regexp.MustCompile(`[^a-z0-9_-]`)

// machineName is this machine's name, as far as it may name a pass.
func machineName() string {
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(strings.ToLower(host), ".")
	name := strings.Trim(otherSigns.ReplaceAllString(host, "-"), "-_")
	name = name[:min(len(name), 63)]
	if !IsName(name) {
		return "machine"
	}
	return name
}

// Describe says in a line what a pass allows.
func (w Who) Describe() string {
	switch w.Role {
	case Worker:
		return fmt.Sprintf("%s, a worker of %s", w.Name, strings.Join(w.Pools, ", "))
	case View:
		return w.Name + ", who sees all jobs"
	case Admin:
		return fmt.Sprintf("%s, who submits jobs of %s and controls everyone's", w.Name, w.Owner)
	}
	return fmt.Sprintf("%s, who submits and controls jobs of %s", w.Name, w.Owner)
}
