package queue

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"vksplat/scene"
)

// Token is what a program needs to connect to a farm: a file of mode 0600.
type Token struct {
	URL     string    `json:"url"`
	CA      string    `json:"ca,omitempty"` // certificates in PEM that the server's must be signed by; "" where it has none
	Seed    string    `json:"seed"`         // nkey, secret
	Role    string    `json:"role"`         // for people: the server knows it by the key
	Name    string    `json:"name"`
	Expires time.Time `json:"expires,omitzero"` // for people, too
}

const maxToken = 1 << 20

// ReadToken reads the file that vksplat farm token wrote.
func ReadToken(path string) (Token, error) {
	const op = "read token"
	var t Token
	info, err := os.Stat(path)
	if err != nil {
		return t, failure(op, path, err, "Make one with vksplat farm token on the machine that serves.", scene.ErrUsage)
	}
	if info.Size() > maxToken || !info.Mode().IsRegular() {
		return t, failure(op, path, errors.New("this is no token"), "", scene.ErrUsage)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrPermission) {
		return t, failure(op, path, err, "A token may be read by its owner only.", scene.ErrUsage)
	}
	if err == nil {
		err = json.Unmarshal(raw, &t)
	}
	if err == nil && (t.URL == "" || t.Seed == "") {
		err = errors.New("it holds no address or no key")
	}
	if err != nil {
		return t, failure(op, path, err, "It is damaged: copy it again, or make one with vksplat farm token on the machine that serves.", scene.ErrData)
	}
	return t, nil
}

// InboxOf is where answers to the holder of a public key go. Nobody else may listen there.
func InboxOf(public string) string { return "_INBOX_" + public }

// key gives the token's pair of keys, and the public one as the server knows it.
func (t Token) key() (pair nkeys.KeyPair, public string, err error) {
	if pair, err = nkeys.FromSeed([]byte(t.Seed)); err == nil {
		public, err = pair.PublicKey()
	}
	if err != nil {
		return nil, "", fmt.Errorf("the key of the token: %w", err)
	}
	return pair, public, nil
}

// Public is the key by which the server knows the token, and it alone: several may have one name.
func (t Token) Public() (string, error) {
	_, public, err := t.key()
	return public, err
}

// Options are those of a connection with the token, which comes back whenever it is lost.
func (t Token) Options(name string) ([]nats.Option, error) {
	key, public, err := t.key()
	if err != nil {
		return nil, err
	}
	options := append(steady(name), nats.Nkey(public, key.Sign), nats.CustomInboxPrefix(InboxOf(public)))
	if t.CA != "" {
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(t.CA)) {
			return nil, errors.New("the certificate of the token is none")
		}
		options = append(options, nats.Secure(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}))
	}
	return options, nil
}

// steady are the options of every connection. What could not be sent is not sent later behind our back: whoever waits for it tries again. A refusal does not
// end the connection: the server's disk or clock may be at fault for a while, and a worker would sit there with a connection that never comes back.
func steady(name string) []nats.Option {
	return []nats.Option{
		nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1), nats.PingInterval(5 * time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(5 * time.Second), nats.IgnoreAuthErrorAbort(),
	}
}

// Dial connects with a token. A server that is not there is an error; one that goes away later is waited for.
func Dial(t Token, name string, more ...nats.Option) (*nats.Conn, error) {
	options, err := t.Options(name)
	if err == nil {
		var nc *nats.Conn
		if nc, err = nats.Connect(t.URL, append(options, more...)...); err == nil {
			return nc, nil
		}
	}
	return nil, failure("connect to farm", t.URL, dialError(err), dialHint(err), scene.ErrTryAgain)
}

// DialCluster connects to servers that others run, with a credentials file of theirs or a token for them, "" for none.
func DialCluster(urls, credentials, name string, more ...nats.Option) (*nats.Conn, error) {
	options := steady(name)
	if token, err := ReadToken(credentials); err == nil {
		if options, err = token.Options(name); err != nil {
			return nil, failure("connect to cluster", urls, err, "", scene.ErrUsage)
		}
	} else if credentials != "" {
		options = append(options, nats.UserCredentials(credentials))
	}
	nc, err := nats.Connect(urls, append(options, more...)...)
	if err != nil {
		return nil, failure("connect to cluster", urls, dialError(err), dialHint(err), scene.ErrTryAgain)
	}
	return nc, nil
}

// Replicas is how many servers should keep each message: three where there are as many.
func Replicas(nc *nats.Conn) int {
	if len(nc.Servers()) >= 3 {
		return 3
	}
	return 1
}

// dialError says in plain words that nobody was there.
func dialError(err error) error {
	if errors.Is(err, nats.ErrNoServers) {
		return &unanswered{"connect", err, err}
	}
	return err
}

func dialHint(err error) string {
	var name x509.HostnameError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, nats.ErrAuthorization):
		return "The token is unknown to the server, has expired or was revoked: make another with vksplat farm token."
	case errors.As(err, &name):
		return "The server's certificate is for other names: start vksplat farm serve with --hosts " + name.Host + ", or connect by a name that it has."
	case errors.As(err, &certificate):
		return "The token is of another farm, or older than the server's certificate: make another with vksplat farm token on the machine that serves."
	}
	return "Is vksplat farm serve running there?"
}
