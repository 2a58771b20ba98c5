package pass

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"vksplat/internal/fault"
)

// Files of a pass.
const (
	caFile   = "ca.pem"
	certFile = "cert.pem"
	keyFile  = "key.pem" // readable by its owner only
	farmFile = "farm.json"
)

// Types of PEM blocks.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// farm is the content of farmFile.
type farm struct {
	Address   string    `json:"address"` // HOST:PORT; may be edited where the server has moved
	Namespace string    `json:"namespace"`
	Joined    time.Time `json:"joined"`
}

// Pass is a pass, read and checked.
type Pass struct {
	Who
	Address   string      // HOST:PORT of the farm
	Namespace string      // of Temporal
	TLS       *tls.Config // for connections to the farm; sees renewed certificates
	Expires   time.Time   // of the certificate that Load found

	dir  string
	ca   *x509.Certificate
	key  *ecdsa.PrivateKey
	cert *atomic.Pointer[tls.Certificate]
}

// orDefault is dir, or else where this user's pass is.
func orDefault(dir string) (string, error) {
	if dir != "" {
		return dir, nil
	}
	config, err := os.UserConfigDir()
	if err != nil {
		return "", &fault.Error{Op: "find the pass", Err: err, Hint: "name its folder", Kind: fault.ErrSetup}
	}
	return filepath.Join(config, "vksplat", "farm"), nil
}

// Exists says whether there is a pass in a folder, this user's if dir is empty.
func Exists(dir string) bool {
	dir, err := orDefault(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, farmFile))
	}
	return err == nil
}

// Load reads the pass in a folder, this user's if dir is empty.
func Load(dir string) (*Pass, error) {
	dir, err := orDefault(dir)
	if err != nil {
		return nil, err
	}
	if err := private(filepath.Join(dir, keyFile)); err != nil {
		return nil, err
	}
	p, err := load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{Op: "read pass", Path: dir, Err: fault.TrimPath(err), Kind: fault.ErrSetup,
			Hint: "this machine has not joined a farm: ask its administrator for a token, then: " +
				fault.Command("farm join TOKEN")}
	case err != nil:
		return nil, &fault.Error{Op: "read pass", Path: dir, Err: err, Kind: fault.ErrSetup,
			Hint: "join the farm again, with " + fault.Setting("overwrite")}
	}
	if now := time.Now(); now.After(p.Expires) {
		return nil, &fault.Error{Op: "read pass", Path: dir, Kind: fault.ErrSetup,
			Err:  fmt.Errorf("the certificate ended on %s", p.Expires.Format(time.DateOnly)),
			Hint: "join the farm again, with " + fault.Setting("overwrite") + ", or set this machine's clock"}
	}
	return p, nil
}

// private refuses a key that others can read. On Windows folders of users are closed to others.
func private(key string) error {
	info, err := os.Stat(key)
	if err != nil || runtime.GOOS == "windows" || info.Mode().Perm()&0o077 == 0 {
		return nil // of an error load says more
	}
	return &fault.Error{Op: "read pass", Path: key, Kind: fault.ErrSetup,
		Err: fmt.Errorf("others can read it: mode %04o", info.Mode().Perm()),
		Hint: "run chmod 600 on it; if someone else may have read it, join the farm again with " +
			fault.Setting("overwrite") + ", and have the old pass revoked"}
}

// load reads a pass, however old it is.
func load(dir string) (*Pass, error) {
	data, err := os.ReadFile(filepath.Join(dir, farmFile))
	if err != nil {
		return nil, err
	}
	var at farm
	if err := json.Unmarshal(data, &at); err != nil {
		return nil, fmt.Errorf("%s: %w", farmFile, err)
	}
	p := &Pass{Address: at.Address, Namespace: at.Namespace, dir: dir, cert: new(atomic.Pointer[tls.Certificate])}
	if p.ca, err = ReadCertificate(filepath.Join(dir, caFile)); err != nil {
		return nil, err
	}
	if p.key, err = ReadKey(filepath.Join(dir, keyFile)); err != nil {
		return nil, err
	}
	leaf, err := ReadCertificate(filepath.Join(dir, certFile))
	if err != nil {
		return nil, err
	}
	if err := p.use(leaf); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(p.ca)
	p.TLS = &tls.Config{
		MinVersion: tls.VersionTLS13,
		RootCAs:    roots,
		ServerName: ServerName,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return p.cert.Load(), nil
		},
	}
	return p, nil
}

// use makes a certificate the one that connections show.
func (p *Pass) use(leaf *x509.Certificate) error {
	who, err := Of(leaf)
	if err != nil {
		return err
	}
	if err := leaf.CheckSignatureFrom(p.ca); err != nil {
		return fmt.Errorf("the certificate is of another farm: %w", err)
	}
	if !p.key.PublicKey.Equal(leaf.PublicKey) {
		return errors.New("the certificate is for another key")
	}
	p.Who, p.Expires = who, leaf.NotAfter
	p.cert.Store(&tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: p.key, Leaf: leaf})
	return nil
}

// ReadCertificate reads a file with one certificate.
func ReadCertificate(path string) (*x509.Certificate, error) {
	der, err := readPEM(path, pemCertificate)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return cert, nil
}

// ReadKey reads a file with a private ECDSA key.
func ReadKey(path string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(path, pemKey)
	if err != nil {
		return nil, err
	}
	any, err := x509.ParsePKCS8PrivateKey(der)
	key, is := any.(*ecdsa.PrivateKey)
	if err != nil || !is {
		return nil, fmt.Errorf("%s holds no ECDSA key", filepath.Base(path))
	}
	return key, nil
}

// readPEM reads a file with one block of a type.
func readPEM(path, kind string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s holds no %s", filepath.Base(path), kind)
	}
	return block.Bytes, nil
}

// writePEM writes a file that its owner alone may read.
func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
