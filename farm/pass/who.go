package pass

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"vksplat/internal/fault"
)

// Role is the permissions of a pass. A role is a word in the certificate's OU.
type Role string

// The roles. Nobody but the server itself runs workflows or completes the work of others.
const (
	View   Role = "view"   // sees jobs
	Submit Role = "submit" // sees jobs; submits and steers those of its owner
	Worker Role = "worker" // takes tasks of its pools
	Admin  Role = "admin"  // as submit, and steers the jobs of every owner
)

// roles lists the roles.
var roles = []Role{View, Submit, Worker, Admin}

// DefaultPool is the pool of workers and tasks that name none, as farm/spec has it.
const DefaultPool = "any"

// poolPrefix begins the URIs of certificates that name pools.
const poolPrefix = "pool/"

// poolScheme is the scheme of these URIs.
const poolScheme = "vksplat"

// word matches names of passes, owners and pools: they become parts of file names, workflow ids and queues.
var word = regexp.MustCompile(`^[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?$`)

// IsName says whether text may name a pass, an owner or a pool. "internal" is Temporal's name for itself.
func IsName(text string) bool { return word.MatchString(text) && text != "internal" }

// Who is the holder of a certificate.
type Who struct {
	ID    string   `json:"id"` // of the pass, the same after every renewal; what is revoked
	Name  string   `json:"name"`
	Role  Role     `json:"role"`
	Owner string   `json:"owner,omitempty"` // of submit and admin: first part of the ids of their jobs
	Pools []string `json:"pools,omitempty"` // of workers
}

// Check says what is wrong with who, nil if nothing is. The ID may be missing.
func (w Who) Check() error {
	const hint = "names have up to 63 lower-case letters, digits, '.', '_' and '-'"
	switch {
	case !slices.Contains(roles, w.Role):
		return fault.Usagef("the roles are view, submit, worker and admin", "unknown role %q", string(w.Role))
	case !IsName(w.Name):
		return fault.Usagef(hint, "%q cannot name a pass", w.Name)
	case w.submits() && !IsName(w.Owner):
		return fault.Usagef(hint, "%q cannot name an owner", w.Owner)
	case !w.submits() && w.Owner != "":
		return fault.Usagef("", "a pass of role %s has no owner", w.Role)
	case w.Role == Worker && len(w.Pools) == 0:
		return fault.Usagef("", "a worker needs a pool")
	case w.Role != Worker && len(w.Pools) > 0:
		return fault.Usagef("", "a pass of role %s has no pools", w.Role)
	}
	for _, pool := range w.Pools {
		if !IsName(pool) {
			return fault.Usagef(hint, "%q cannot name a pool", pool)
		}
	}
	return nil
}

// submits says whether the role has an owner.
func (w Who) submits() bool { return w.Role == Submit || w.Role == Admin }

// Subject is who as a certificate's subject.
func (w Who) Subject() pkix.Name {
	name := pkix.Name{CommonName: w.Name, OrganizationalUnit: []string{string(w.Role)}, SerialNumber: w.ID}
	if w.Owner != "" {
		name.Organization = []string{w.Owner}
	}
	return name
}

// URIs are the pools as a certificate names them.
func (w Who) URIs() (list []*url.URL) {
	for _, pool := range w.Pools {
		list = append(list, &url.URL{Scheme: poolScheme, Opaque: poolPrefix + pool})
	}
	return list
}

// Of reads a certificate whose chain the caller has verified.
func Of(cert *x509.Certificate) (Who, error) {
	who := Who{ID: cert.Subject.SerialNumber, Name: cert.Subject.CommonName}
	if len(cert.Subject.OrganizationalUnit) == 1 {
		who.Role = Role(cert.Subject.OrganizationalUnit[0])
	}
	if len(cert.Subject.Organization) == 1 {
		who.Owner = cert.Subject.Organization[0]
	}
	for _, uri := range cert.URIs {
		if pool, is := strings.CutPrefix(uri.Opaque, poolPrefix); is && uri.Scheme == poolScheme {
			who.Pools = append(who.Pools, pool)
		}
	}
	if err := who.Check(); err != nil {
		return Who{}, fmt.Errorf("the certificate is not one of a farm: %w", err)
	}
	if !word.MatchString(who.ID) {
		return Who{}, fmt.Errorf("the certificate has no id of a pass")
	}
	return who, nil
}
