package server

import (
	"encoding/base64"
	"maps"
	"slices"
	"sync"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"vksplat/farm/queue"
)

// keyring lets clients of the NATS server in, in place of its own table of users: that table can only be replaced together with all options of the server,
// which is a race against clients that connect meanwhile.
type keyring struct {
	own string // public key of connections inside this process

	lock  sync.Mutex
	roles map[string]Role // by public key
}

// set replaces the keys that are let in. Who holds another stays connected until evict.
func (k *keyring) set(roles map[string]Role) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.roles = maps.Clone(roles)
}

func (k *keyring) role(public string) (Role, bool) {
	if public == k.own {
		return Admin, true
	}
	role, known := k.roles[public]
	return role, known
}

// Check implements natsserver.Authentication. The lock is held until the client has its rights: one that is let in before set is known by its key to evict.
func (k *keyring) Check(c natsserver.ClientAuthentication) bool {
	said := c.GetOpts()
	if !isSigned(said.Nkey, said.Sig, c.GetNonce()) {
		return false
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	role, known := k.role(said.Nkey)
	if !known {
		return false
	}
	c.RegisterUser(&natsserver.User{Username: said.Nkey, Permissions: role.permissions(said.Nkey)})
	return true
}

// isSigned says whether the holder of a public key has signed what the server gave this connection to sign.
func isSigned(public, signature string, nonce []byte) bool {
	if len(nonce) == 0 || !nkeys.IsValidPublicUserKey(public) {
		return false
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(public)
	return err == nil && key.Verify(nonce, raw) == nil
}

// evict ends the connections of all that are not let in any more.
func (k *keyring) evict(s *natsserver.Server) error {
	list, err := s.Connz(&natsserver.ConnzOptions{Username: true, Limit: 2 * maxClients})
	if err != nil {
		return err
	}
	k.lock.Lock()
	defer k.lock.Unlock()
	gone := slices.DeleteFunc(list.Conns, func(c *natsserver.ConnInfo) bool {
		_, known := k.role(c.AuthorizedUser)
		return known || c.AuthorizedUser == ""
	})
	for _, c := range gone {
		_ = s.DisconnectClientByID(c.Cid) // or it has left
	}
	return nil
}

// permissions are those of a role for the holder of a public key.
func (r Role) permissions(public string) *natsserver.Permissions {
	return &natsserver.Permissions{
		Publish:   &natsserver.SubjectPermission{Allow: roles[r].publish},
		Subscribe: &natsserver.SubjectPermission{Allow: slices.Concat(roles[r].subscribe, []string{queue.InboxOf(public) + ".>"})},
	}
}
