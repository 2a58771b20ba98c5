package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nkeys"

	"vksplat/farm/queue"
	"vksplat/scene"
)

// Key is one that the server lets in.
type Key struct {
	Public  string    `json:"public"`
	Role    Role      `json:"role"`
	Name    string    `json:"name"`
	Made    time.Time `json:"made"`
	Expires time.Time `json:"expires,omitzero"` // zero for never
}

// Expired says whether the server lets it in no more.
func (k *Key) Expired(now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }

const (
	keyFolder   = "keys"
	addressFile = "address.json"
	adminFile   = "admin.token"
	maxKeyFile  = 64 << 10
	maxKeyName  = 64 // characters
	minKeyPart  = 8  // of a key that Revoke takes for the whole
)

// address is what tokens say of a server.
type address struct {
	URL string `json:"url"`
	CA  string `json:"ca,omitempty"`
}

// NewToken lets a new key in, for life, or until it expires if life is not zero. The server of the folder notices within a second.
func NewToken(dir string, role Role, name string, life time.Duration) (queue.Token, error) {
	const op = "make token"
	if life < 0 {
		return queue.Token{}, failure(op, name, errors.New("a life is not below zero"), "", scene.ErrUsage)
	}
	raw, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return queue.Token{}, failure(op, dir, err, "Start vksplat farm serve with this folder first.", scene.ErrUsage)
	}
	var at address
	if err := json.Unmarshal(raw, &at); err != nil {
		return queue.Token{}, failure(op, filepath.Join(dir, addressFile), err, "", scene.ErrData)
	}
	token, public, err := newKey(role, name)
	if err != nil {
		return token, err
	}
	key := Key{Public: public, Role: role, Name: name, Made: time.Now().UTC().Truncate(time.Second)}
	if life > 0 {
		key.Expires = time.Now().Add(life).UTC()
	}
	if err := writeJSON(filepath.Join(dir, keyFolder, public+".json"), key); err != nil {
		return queue.Token{}, failure(op, dir, err, "", scene.ErrTryAgain)
	}
	token.URL, token.CA, token.Expires = at.URL, at.CA, key.Expires
	return token, nil
}

// newKey makes a token that names no server yet.
func newKey(role Role, name string) (token queue.Token, public string, err error) {
	const op = "make token"
	if _, ok := roles[role]; !ok {
		return token, "", failure(op, string(role), errors.New("there is no such role"), fmt.Sprintf("Roles are %v.", Roles()), scene.ErrUsage)
	}
	if err := CheckName(name); err != nil {
		return token, "", err
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return token, "", failure(op, name, err, "", nil)
	}
	public, keyErr := pair.PublicKey()
	seed, seedErr := pair.Seed()
	if err := errors.Join(keyErr, seedErr); err != nil {
		return token, "", failure(op, name, err, "", nil)
	}
	return queue.Token{Seed: string(seed), Role: string(role), Name: name}, public, nil
}

// NewClusterToken makes a token for NATS servers that others run, and the line by which their configuration lets its holder in: an element of users.
func NewClusterToken(urls, ca string, role Role, name string) (token queue.Token, line string, err error) {
	token, public, err := newKey(role, name)
	if err != nil {
		return token, "", err
	}
	token.URL, token.CA = urls, ca
	rights := role.permissions(public)
	publish, publishErr := json.Marshal(rights.Publish.Allow)
	subscribe, subscribeErr := json.Marshal(rights.Subscribe.Allow)
	if err := errors.Join(publishErr, subscribeErr); err != nil {
		return token, "", failure("make token", name, err, "", nil)
	}
	text := strings.NewReplacer(`\u003e`, ">").Replace(fmt.Sprintf("{ nkey: %s, permissions: { publish: %s, subscribe: %s } } # %s, %s", public, publish, subscribe, name, role))
	return token, text, nil
}

var nameForm = regexp.MustCompile(`^[\p{L}\p{N}]([\p{L}\p{M}\p{N} ._@+-]*[\p{L}\p{M}\p{N}])?$`)

// CheckName refuses what is no name of a token: it stands in tables, on command lines and often in the name of a file.
func CheckName(name string) error {
	if utf8.RuneCountInString(name) > maxKeyName || !nameForm.MatchString(name) {
		return failure("make token", strconv.QuoteToASCII(name), errors.New("this is no name"),
			fmt.Sprintf("Names have up to %d letters, digits, spaces and . _ @ + -, and begin and end with a letter or digit.", maxKeyName), scene.ErrUsage)
	}
	return nil
}

// Keys lists the keys of a folder, the oldest first, those that have expired too. With an error about files that cannot be read it still lists the others.
func Keys(dir string) ([]Key, error) {
	keys, _, err := listKeys(dir)
	return keys, err
}

// listKeys is Keys, and says of which public keys the disk did not give the files.
func listKeys(dir string) (keys []Key, unread map[string]bool, bad error) {
	entries, err := os.ReadDir(filepath.Join(dir, keyFolder))
	if err != nil {
		return nil, nil, failure("list keys", dir, err, "Start vksplat farm serve with this folder first.", scene.ErrUsage)
	}
	unread = map[string]bool{}
	for _, entry := range entries {
		path := filepath.Join(dir, keyFolder, entry.Name())
		public, ok := strings.CutSuffix(entry.Name(), ".json")
		if !ok || !nkeys.IsValidPublicUserKey(public) {
			continue // one that is being written
		}
		key, err := readKey(path, public)
		if errors.Is(err, fs.ErrNotExist) {
			continue // revoked meanwhile
		}
		if err != nil {
			var disk *fs.PathError
			unread[public] = errors.As(err, &disk)
			bad = errors.Join(bad, failure("read key", path, err, "Remove the file to revoke its token.", scene.ErrData))
			continue
		}
		keys = append(keys, key)
	}
	slices.SortFunc(keys, compareKeys)
	return keys, unread, bad
}

func compareKeys(a, b Key) int {
	if c := a.Made.Compare(b.Made); c != 0 {
		return c
	}
	return strings.Compare(a.Public, b.Public)
}

func readKey(path, public string) (key Key, err error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxKeyFile {
		err = fmt.Errorf("it has %d bytes", info.Size())
	}
	if err != nil {
		return key, err
	}
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, &key)
	}
	if _, known := roles[key.Role]; err == nil && (!known || key.Public != public) {
		err = errors.New("it names no role, or another key than its file")
	}
	return key, err
}

// Revoke shuts out the key of that name, or that key, which may be given by its beginning, and ends its connections. Several keys of a name are an error, unless
// all are meant. It returns those that were shut out.
func Revoke(dir, name string, all bool) (gone []Key, err error) {
	const op = "revoke token"
	keys, err := Keys(dir)
	if err != nil && len(keys) == 0 {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k Key) bool {
		return k.Name != name && (len(name) < minKeyPart || !strings.HasPrefix(k.Public, name))
	})
	if len(keys) == 0 {
		return nil, failure(op, name, errors.New("there is no such token"), "vksplat farm token --list shows all.", scene.ErrUsage)
	}
	if len(keys) > 1 && !all {
		var list []string
		for _, key := range keys {
			list = append(list, fmt.Sprintf("%s (%s, made %s)", key.Public, key.Role, key.Made.Local().Format(time.DateTime)))
		}
		return nil, failure(op, name, fmt.Errorf("%d tokens have this name: %s", len(keys), strings.Join(list, "; ")), "Revoke one by its key, or all of them with --all.", scene.ErrUsage)
	}
	for _, key := range keys {
		if err := os.Remove(filepath.Join(dir, keyFolder, key.Public+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, failure(op, name, err, "", scene.ErrTryAgain)
		}
		gone = append(gone, key)
	}
	return gone, nil
}

// letIn are the keys that may connect now, and what as.
func letIn(keys []Key, now time.Time) map[string]Role {
	roles := map[string]Role{}
	for _, key := range keys {
		if !key.Expired(now) {
			roles[key.Public] = key.Role
		}
	}
	return roles
}

// writeJSON puts a file of mode 0600 in place whole.
func writeJSON(path string, value any) error {
	raw, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return writeSecret(path, append(raw, '\n'))
}

func writeSecret(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

func failure(op, path string, err error, hint string, kind error) error {
	return &scene.Error{Op: op, Path: path, Err: err, Hint: hint, Kind: kind}
}
