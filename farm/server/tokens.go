package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

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

const (
	keyFolder   = "keys"
	addressFile = "address.json"
	adminFile   = "admin.token"
	maxKeyFile  = 64 << 10
	maxKeyName  = 128
)

// address is what tokens say of a server.
type address struct {
	URL string `json:"url"`
	CA  string `json:"ca,omitempty"`
}

// NewToken lets a new key in, for life, or until it expires if life is not zero. The server of the folder notices within a second.
func NewToken(dir string, role Role, name string, life time.Duration) (queue.Token, error) {
	const op = "make token"
	if _, ok := roles[role]; !ok {
		return queue.Token{}, failure(op, string(role), errors.New("there is no such role"), fmt.Sprintf("Roles are %v.", Roles()), scene.ErrUsage)
	}
	if len(name) > maxKeyName || life < 0 {
		return queue.Token{}, failure(op, name, fmt.Errorf("a name has at most %d bytes, a life is not below zero", maxKeyName), "", scene.ErrUsage)
	}
	raw, err := os.ReadFile(filepath.Join(dir, addressFile))
	if err != nil {
		return queue.Token{}, failure(op, dir, err, "Start vksplat farm serve with this folder first.", scene.ErrUsage)
	}
	var at address
	if err := json.Unmarshal(raw, &at); err != nil {
		return queue.Token{}, failure(op, filepath.Join(dir, addressFile), err, "", scene.ErrData)
	}
	pair, err := nkeys.CreateUser()
	if err != nil {
		return queue.Token{}, failure(op, dir, err, "", nil)
	}
	public, err := pair.PublicKey()
	if err != nil {
		return queue.Token{}, failure(op, dir, err, "", nil)
	}
	seed, err := pair.Seed()
	if err != nil {
		return queue.Token{}, failure(op, dir, err, "", nil)
	}
	key := Key{Public: public, Role: role, Name: name, Made: time.Now().UTC().Truncate(time.Second)}
	if life > 0 {
		key.Expires = time.Now().Add(life).UTC()
	}
	if err := writeJSON(filepath.Join(dir, keyFolder, public+".json"), key); err != nil {
		return queue.Token{}, failure(op, dir, err, "", scene.ErrTryAgain)
	}
	return queue.Token{URL: at.URL, CA: at.CA, Seed: string(seed), Role: string(role), Name: name, Expires: key.Expires}, nil
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

// Revoke shuts out the keys of that name or public key, and ends their connections.
func Revoke(dir, name string) error {
	keys, err := Keys(dir)
	if err != nil && len(keys) == 0 {
		return err
	}
	found := false
	for _, key := range keys {
		if key.Public != name && key.Name != name {
			continue
		}
		found = true
		if err := os.Remove(filepath.Join(dir, keyFolder, key.Public+".json")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return failure("revoke token", name, err, "", scene.ErrTryAgain)
		}
	}
	if !found {
		return failure("revoke token", name, errors.New("there is no such token"), "", scene.ErrUsage)
	}
	return nil
}

// letIn are the keys that may connect now, and what as.
func letIn(keys []Key, now time.Time) map[string]Role {
	roles := map[string]Role{}
	for _, key := range keys {
		if key.Expires.IsZero() || now.Before(key.Expires) {
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
