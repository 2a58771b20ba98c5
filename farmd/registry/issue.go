package registry

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"vksplat/farm/pass"
	"vksplat/internal/fault"
)

// clockSkew is how far the clocks of machines may be apart.
const clockSkew = 10 * time.Minute

// certificate is what certificates have in common.
func certificate(life time.Duration) *x509.Certificate {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial)
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial),
		NotBefore:    now.Add(-clockSkew),
		NotAfter:     now.Add(life),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
}

// Join uses a token up and gives its holder a pass with the key of a request (CSR, DER). Name counts where the token
// gives none.
func (r *Registry) Join(secret []byte, name string, csr []byte) (*x509.Certificate, error) {
	key, err := keyOf(csr)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(r.dir, tokens, pass.SecretID(secret)+".json")
	unknown := &fault.Error{Err: errors.New("the token is unknown, was used, or has expired"),
		Hint: "a token is good for one machine; make another with vksplat-farmd token", Kind: fault.ErrSetup}
	var g Grant
	if err := readJSON(path, &g); errors.Is(err, fs.ErrNotExist) {
		return nil, unknown
	} else if err != nil {
		return nil, err
	}
	if time.Now().After(g.Expires) {
		return nil, unknown
	}
	who := g.Who
	if who.Name == "" {
		who.Name = name
	}
	who.ID = newID()
	if err := who.Check(); err != nil {
		return nil, err
	}
	return r.admit(path, unknown, who, key)
}

// admit uses the token in a file up, and gives a pass for it. Of two that come at the same time, with one token or
// one name, one succeeds: a token's file can be renamed once, a pass's file made only where there is none.
func (r *Registry) admit(token string, unknown error, who pass.Who, key crypto.PublicKey) (*x509.Certificate, error) {
	cert, err := r.sign(who, key)
	if err != nil {
		return nil, err
	}
	used := token + ".used"
	if err := os.Rename(token, used); errors.Is(err, fs.ErrNotExist) {
		return nil, unknown
	} else if err != nil {
		return nil, err
	}
	rec := Record{Who: who, Issued: time.Now().UTC().Truncate(time.Second), Expires: cert.NotAfter}
	if err := putJSON(r.passFile(who.Name), rec, os.Link); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = taken(who.Name)
		}
		return nil, errors.Join(err, os.Rename(used, token))
	}
	return cert, os.Remove(used)
}

// Welcome refuses a pass, whose certificate the caller has verified, that was revoked. One that is not known, as it was
// given after the backup which this registry was restored from, is taken in: what works can be listed and revoked.
func (r *Registry) Welcome(who pass.Who, cert *x509.Certificate) error {
	if r.IsPage(who) {
		return nil
	}
	if r.Revoked(who.ID) {
		return errRevoked
	}
	file := r.passFile(who.Name)
	var rec Record
	err := readJSON(file, &rec)
	if errors.Is(err, fs.ErrNotExist) {
		rec = Record{Who: who, Issued: cert.NotBefore.Add(clockSkew), Expires: cert.NotAfter}
		switch err = putJSON(file, rec, os.Link); {
		case err == nil && r.Revoked(who.ID): // meanwhile: that is why it was not there
			return errors.Join(errRevoked, os.Remove(file))
		case errors.Is(err, fs.ErrExist): // by another connection
			rec = Record{} // whose pools are who's otherwise
			err = readJSON(file, &rec)
		}
	}
	if err == nil && rec.ID != who.ID {
		err = fmt.Errorf("another pass has the name %s", who.Name)
	}
	return err
}

var errRevoked = errors.New("the pass was revoked")

// Renew extends a pass that is welcome.
func (r *Registry) Renew(who pass.Who, csr []byte) (*x509.Certificate, error) {
	key, err := keyOf(csr)
	if err != nil {
		return nil, err
	}
	cert, err := r.sign(who, key)
	if err != nil {
		return nil, err
	}
	var rec Record
	if err := readJSON(r.passFile(who.Name), &rec); err != nil || rec.ID != who.ID {
		return cert, err // revoked meanwhile: the certificate is of no use
	}
	rec.Expires = cert.NotAfter
	return cert, putJSON(r.passFile(who.Name), rec, os.Rename)
}

// newID makes the ID of a pass.
func newID() string {
	id := make([]byte, 16)
	_, _ = rand.Read(id)
	return hex.EncodeToString(id)
}

// sign makes the certificate of a pass.
func (r *Registry) sign(who pass.Who, key crypto.PublicKey) (*x509.Certificate, error) {
	template := certificate(passLife)
	template.Subject, template.URIs = who.Subject(), who.URIs()
	return r.issue(template, key)
}

func (r *Registry) issue(template *x509.Certificate, key crypto.PublicKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, r.ca, key, r.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Server makes the server's certificate, which nothing keeps: every start makes another.
func (r *Registry) Server() (tls.Certificate, error) {
	template := certificate(authorityLife)
	template.Subject.CommonName = pass.ServerName
	template.DNSNames = []string{pass.ServerName}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return r.own(template)
}

// Page makes the pass of the server's own page, which sees and changes nothing.
func (r *Registry) Page() (tls.Certificate, error) {
	who := pass.Who{ID: newID(), Name: "page", Role: pass.View}
	r.page = who.ID
	template := certificate(authorityLife)
	template.Subject = who.Subject()
	return r.own(template)
}

// IsPage says whether a pass is that of the server's own page.
func (r *Registry) IsPage(who pass.Who) bool { return who.ID == r.page }

// own makes a certificate with a key of this process.
func (r *Registry) own(template *x509.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := r.issue(template, &key.PublicKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{leaf.Raw, r.ca.Raw}, PrivateKey: key, Leaf: leaf}, nil
}

// keyOf is the key of a request, which has proved that it has the private half.
func keyOf(csr []byte) (crypto.PublicKey, error) {
	bad := fault.Usagef("use a vksplat of the server's version", "the request for a certificate cannot be read")
	req, err := x509.ParseCertificateRequest(csr)
	if err != nil || req.CheckSignature() != nil {
		return nil, bad
	}
	if key, is := req.PublicKey.(*ecdsa.PublicKey); !is || key.Curve != elliptic.P256() {
		return nil, bad
	}
	return req.PublicKey, nil
}
