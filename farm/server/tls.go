package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	authorityLife   = 10 * 365 * 24 * time.Hour
	certificateLife = 2 * 365 * 24 * time.Hour
	renewBefore     = 60 * 24 * time.Hour
)

// ownCertificate gives a certificate for the hosts, signed by an authority that the folder keeps, and that authority in PEM. Both are made when they are
// missing; the certificate also when it is old, other hosts are wanted, or it cannot be used.
func ownCertificate(dir string, hosts []string) (tls.Certificate, string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return tls.Certificate{}, "", err
	}
	authority, err := loadPair(filepath.Join(dir, "ca"))
	if errors.Is(err, os.ErrNotExist) {
		authority, err = makePair(filepath.Join(dir, "ca"), &x509.Certificate{
			Subject: pkix.Name{CommonName: "vksplat farm"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
			KeyUsage: x509.KeyUsageCertSign, NotAfter: time.Now().Add(authorityLife),
		}, nil)
	}
	if err != nil {
		return tls.Certificate{}, "", err
	}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate[0]}))
	pair, err := loadPair(filepath.Join(dir, "server"))
	if err == nil && serves(pair.Leaf, hosts) && pair.Leaf.CheckSignatureFrom(authority.Leaf) == nil {
		return pair, ca, nil
	}
	var disk *fs.PathError
	if errors.As(err, &disk) && !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, "", err
	}
	// It is missing, old or of another authority; or key and certificate are no pair, where this was interrupted between them.
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: hosts[0]}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotAfter: time.Now().Add(certificateLife),
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	pair, err = makePair(filepath.Join(dir, "server"), template, &authority)
	return pair, ca, err
}

// serves says whether the certificate is good for the hosts, for a while.
func serves(leaf *x509.Certificate, hosts []string) bool {
	return time.Until(leaf.NotAfter) > renewBefore && !slices.ContainsFunc(hosts, func(host string) bool { return leaf.VerifyHostname(host) != nil })
}

func loadPair(path string) (tls.Certificate, error) {
	certificate, err := os.ReadFile(path + ".pem")
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := os.ReadFile(path + ".key")
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(certificate, key)
}

// makePair makes a key and a certificate of it, signed by the authority, nil for itself, and stores both.
func makePair(path string, template *x509.Certificate, authority *tls.Certificate) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return tls.Certificate{}, err
	}
	template.NotBefore = time.Now().Add(-time.Hour) // clocks differ
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return tls.Certificate{}, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	var public, private bytes.Buffer
	err = errors.Join(
		pem.Encode(&public, &pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.Encode(&private, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
		writeSecret(path+".key", private.Bytes()), writeSecret(path+".pem", public.Bytes()),
	)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(public.Bytes(), private.Bytes())
}
