// Package pass identifies machines and people to a farm: a folder with a private key, a certificate that the farm's own
// authority signed, and where the farm is.
//
// A certificate says everything that the farm decides by (Who): a name, a role, the owner whose jobs it may change, the
// pools whose tasks it may take. Join makes a key on this machine and trades a one-time Token for a certificate; the
// token holds the SHA-256 of the authority's certificate, so that the first connection is to the right farm. Renew
// extends a certificate before it ends. The server of both is vksplat-farmd; the messages are in messages.go.
package pass
