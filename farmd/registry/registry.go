// Package registry is who belongs to a farm, as files of the server's data folder:
//
//	ca.pem, ca-key.pem   the farm's own certificate authority
//	seal.key             the key of package gate's seals on task tokens
//	tokens/ID.json       a token that has not been used; the name is a hash of its secret
//	passes/NAME.json     a pass that is valid
//	revoked/ID.json      a pass that was revoked, by its ID, which stays the same over renewals
//
// Every change is one rename, so that the server and the commands token, list and revoke, which are other processes,
// need no locks: a token is used up by the rename of its file, a pass revoked by the rename of its own. The server
// looks at every request whether revoked/ID.json exists.
package registry

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vksplat/farm/pass"
	"vksplat/internal/atomicfile"
	"vksplat/internal/fault"
)

// Lifetimes of certificates. Passes renew themselves; a revoked one ends at once.
const (
	authorityLife = 30 * 365 * 24 * time.Hour
	passLife      = 365 * 24 * time.Hour
)

// Files and folders.
const (
	caFile    = "ca.pem"
	caKeyFile = "ca-key.pem"
	sealFile  = "seal.key"
	tokens    = "tokens"
	passes    = "passes"
	revoked   = "revoked"
)

// Files are the names in the data folder that belong to the registry, for backups. Tokens are not among them: one that
// was used after the backup would be good again.
var Files = []string{caFile, caKeyFile, sealFile, passes, revoked}

// Registry is the folder, opened.
type Registry struct {
	dir  string
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	seal []byte
	page string // ID of the pass that Page made
}

// Grant is what a token makes of its holder.
type Grant struct {
	pass.Who           // without ID; without name where the holder may choose it
	Expires  time.Time `json:"expires"`
}

// Record is a pass that was given.
type Record struct {
	pass.Who
	Issued  time.Time  `json:"issued"`
	Expires time.Time  `json:"expires"` // of the newest certificate
	Revoked *time.Time `json:"revoked,omitempty"`
}

// Exists says whether a folder has been set up by Create. One that passes were given from is, whatever else is missing:
// a new authority would make all of them worthless.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, caFile))
	given, _ := os.ReadDir(filepath.Join(dir, passes)) // none if it cannot be read
	return err == nil || len(given) > 0
}

// Create sets a folder up: a new authority, nobody in it.
func Create(dir string) error {
	for _, sub := range []string{tokens, passes, revoked} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := certificate(authorityLife)
	template.Subject.CommonName = "vksplat farm"
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	template.ExtKeyUsage = nil
	ca, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	seal := make([]byte, 32)
	_, _ = rand.Read(seal)
	// The authority's certificate comes last: Exists goes by it.
	return errors.Join(
		put(filepath.Join(dir, sealFile), []byte(hex.EncodeToString(seal)+"\n"), os.Rename),
		put(filepath.Join(dir, caKeyFile), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
			os.Rename),
		put(filepath.Join(dir, caFile), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca}), os.Rename))
}

// Open reads a folder that Create made.
func Open(dir string) (*Registry, error) {
	r, err := open(dir)
	if errors.Is(err, fs.ErrNotExist) && !Exists(dir) {
		return nil, &fault.Error{Op: "open farm", Path: dir, Err: fault.TrimPath(err), Kind: fault.ErrSetup,
			Hint: "name the folder that vksplat-farmd serve uses, by --data"}
	}
	if err != nil {
		return nil, &fault.Error{Op: "open farm", Path: dir, Err: err, Kind: fault.ErrSetup,
			Hint: "restore the folder from a backup"}
	}
	return r, nil
}

func open(dir string) (*Registry, error) {
	r := &Registry{dir: dir}
	var err error
	if r.ca, err = pass.ReadCertificate(filepath.Join(dir, caFile)); err != nil {
		return nil, err
	}
	if r.key, err = pass.ReadKey(filepath.Join(dir, caKeyFile)); err != nil {
		return nil, err
	}
	if !r.key.PublicKey.Equal(r.ca.PublicKey) {
		return nil, fmt.Errorf("%s is not the key of %s", caKeyFile, caFile)
	}
	text, err := os.ReadFile(filepath.Join(dir, sealFile))
	if err != nil {
		return nil, err
	}
	if r.seal, err = hex.DecodeString(strings.TrimSpace(string(text))); err != nil || len(r.seal) != 32 {
		return nil, fmt.Errorf("%s holds no key of 32 bytes", sealFile)
	}
	return r, nil
}

// Seal is the key of seals on task tokens.
func (r *Registry) Seal() []byte { return r.seal }

// CA is the authority's certificate.
func (r *Registry) CA() *x509.Certificate { return r.ca }

// NewToken keeps a grant and returns the token for it.
func (r *Registry) NewToken(address string, g Grant) (pass.Token, error) {
	check := g.Who
	if check.Name == "" {
		check.Name = "chosen-later"
	}
	if err := check.Check(); err != nil {
		return pass.Token{}, err
	}
	if g.Name != "" && r.known(g.Name) {
		return pass.Token{}, taken(g.Name)
	}
	t := pass.NewToken(address, sha256.Sum256(r.ca.Raw))
	dir := filepath.Join(r.dir, tokens)
	err := os.MkdirAll(dir, 0o700) // a backup has none
	if err == nil {
		err = putJSON(filepath.Join(dir, t.ID()+".json"), g, os.Rename)
	}
	if err != nil {
		return pass.Token{}, &fault.Error{Op: "make token", Path: dir, Err: fault.Pathless(err),
			Kind: fault.ErrTryAgain, Hint: "is there room on the disk, and may this user write there?"}
	}
	return t, nil
}

// known says whether there is a valid pass of a name.
func (r *Registry) known(name string) bool {
	_, err := os.Lstat(r.passFile(name))
	return err == nil
}

func (r *Registry) passFile(name string) string { return filepath.Join(r.dir, passes, name+".json") }

// taken is the error of a name that is in use.
func taken(name string) error {
	return fault.Usagef("choose another name, or revoke that pass first", "there is a pass named %q already", name)
}

// Revoked says whether a pass is no longer valid. It is asked at every request and reads no file.
func (r *Registry) Revoked(id string) bool {
	_, err := os.Lstat(filepath.Join(r.dir, revoked, id+".json"))
	return !errors.Is(err, fs.ErrNotExist) // what cannot be found out counts as revoked
}

// Revoke ends the pass of a name, whose name may then be given again.
func (r *Registry) Revoke(name string) (Record, error) {
	var rec Record
	missing := fault.Usagef("vksplat-farmd list names the passes", "there is no pass named %q", name)
	if !pass.IsName(name) {
		return rec, missing
	}
	if err := readJSON(r.passFile(name), &rec); errors.Is(err, fs.ErrNotExist) {
		return rec, missing
	} else if err != nil {
		return rec, err
	}
	now := time.Now().UTC().Truncate(time.Second)
	rec.Revoked = &now
	// First the revocation: if the rest fails, the pass has ended and the same command works again.
	if err := putJSON(filepath.Join(r.dir, revoked, rec.ID+".json"), rec, os.Rename); err != nil {
		return rec, err
	}
	if err := os.Remove(r.passFile(name)); err != nil {
		return rec, err
	}
	return rec, atomicfile.SyncDir(filepath.Join(r.dir, passes))
}

// HasPool says whether a valid pass or an unused token has a pool.
func (r *Registry) HasPool(name string) bool {
	valid, open, _ := r.List() // what can be read
	return name == pass.DefaultPool ||
		slices.ContainsFunc(valid, func(p Record) bool { return p.Revoked == nil && slices.Contains(p.Pools, name) }) ||
		slices.ContainsFunc(open, func(g Grant) bool { return slices.Contains(g.Pools, name) })
}

// List returns all passes, valid ones first, and what unused tokens grant; with an error, those that can be read.
func (r *Registry) List() (records []Record, open []Grant, err error) {
	valid, err1 := readAll[Record](filepath.Join(r.dir, passes))
	ended, err2 := readAll[Record](filepath.Join(r.dir, revoked))
	open, err3 := readAll[Grant](filepath.Join(r.dir, tokens))
	for _, list := range [][]Record{valid, ended} {
		slices.SortStableFunc(list, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	}
	open = slices.DeleteFunc(open, func(g Grant) bool { return !time.Now().Before(g.Expires) })
	return append(valid, ended...), open, errors.Join(err1, err2, err3)
}
