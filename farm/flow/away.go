package flow

import "strings"

// gRPC passes on the text of these errors of TLS, not the errors.
const (
	tlsRefused = "remote error: tls: bad certificate"
	tlsForeign = "x509: certificate signed by unknown authority"
	tlsClock   = "x509: certificate has expired or is not yet valid"
)

// NoRoom is the answer of a farm's server whose database has no room.
const NoRoom = "the farm's server has no room on its disk"

// NeedsPass says that a server was reached, and that this machine needs another pass for it.
func NeedsPass(err error) bool {
	return strings.Contains(err.Error(), tlsRefused) || strings.Contains(err.Error(), tlsForeign)
}

// WrongClock says that a server's certificate is not valid at the time of this machine.
func WrongClock(err error) bool { return strings.Contains(err.Error(), tlsClock) }

// Away says in a few words why a server was not reached.
func Away(err error) string {
	text := err.Error()
	switch at := strings.LastIndex(text, "dial tcp "); {
	case strings.Contains(text, tlsRefused):
		return "it does not accept this machine's pass: it was revoked, or has ended"
	case strings.Contains(text, tlsForeign):
		return "it is not the farm of this machine's pass: the farm was set up again"
	case at >= 0:
		return strings.TrimSuffix(text[at:], "\"")
	}
	return text
}
