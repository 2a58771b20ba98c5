package pass

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net"
	"strings"

	"vksplat/internal/fault"
)

// tokenPrefix begins a token: people see what it is, and programs which form it has.
const tokenPrefix = "vksfarm1-"

// Sizes of a token's parts in bytes: hash of the authority, secret, a checksum against tokens that were copied in
// part.
const (
	hashSize     = sha256.Size
	secretSize   = 16
	checksumSize = 4
)

// Token lets one machine or person join a farm, once: where it is, how to know it, and a secret that it made. What the
// holder becomes is not in it: the farm keeps that.
type Token struct {
	Address string         // HOST:PORT
	CA      [hashSize]byte // SHA-256 of the authority's certificate
	Secret  [secretSize]byte
}

// NewToken makes a token with a new secret.
func NewToken(address string, ca [hashSize]byte) Token {
	t := Token{Address: address, CA: ca}
	_, _ = rand.Read(t.Secret[:]) // never fails: see crypto/rand
	return t
}

// ID names a token without giving it away. The farm keeps tokens by it.
func (t Token) ID() string { return SecretID(t.Secret[:]) }

// SecretID is the ID of the token that has a secret.
func SecretID(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:16])
}

// String is the token as people copy it.
func (t Token) String() string {
	body := append(append(t.CA[:len(t.CA):len(t.CA)], t.Secret[:]...), t.Address...)
	sum := sha256.Sum256(body)
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(append(body, sum[:checksumSize]...))
}

// ParseToken reads a token.
func ParseToken(text string) (t Token, err error) {
	const hint = "copy the whole token, as vksplat-farmd printed it"
	encoded, is := strings.CutPrefix(strings.TrimSpace(text), tokenPrefix)
	data, err := base64.RawURLEncoding.DecodeString(encoded)
	if !is || err != nil || len(data) < hashSize+secretSize+checksumSize {
		return t, fault.Usagef(hint, "this is not a token of a farm")
	}
	body, sum := data[:len(data)-checksumSize], data[len(data)-checksumSize:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:checksumSize]) {
		return t, fault.Usagef(hint, "the token is incomplete or has a typing error")
	}
	t.Address = string(body[hashSize+secretSize:])
	if _, _, err := net.SplitHostPort(t.Address); err != nil {
		return t, fault.Usagef("", "the token names no farm: %v", err)
	}
	copy(t.CA[:], body)
	copy(t.Secret[:], body[hashSize:])
	return t, nil
}
