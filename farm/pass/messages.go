package pass

// EnrolProtocol is the ALPN protocol for joining and renewing. The farm's port is the same for these
// and for the work, which is gRPC ("h2").
const EnrolProtocol = "vksplat-farm-enrol"

// ServerName is the name in the server's certificate. Who trusts a farm's authority, which signs nothing else for
// servers, need not know under which addresses the server is reached.
const ServerName = "vksplat-farmd"

// Paths of requests, both by POST with a Request as JSON, answered by a Reply.
const (
	JoinPath  = "/join"
	RenewPath = "/renew" // with the certificate that is renewed
)

// Request asks for a certificate.
type Request struct {
	Secret []byte `json:"secret,omitempty"` // of a token, to join
	Name   string `json:"name,omitempty"`   // of the pass, where the token gives none
	CSR    []byte `json:"csr"`              // DER; only its key counts
}

// Reply holds a certificate, or says why there is none.
type Reply struct {
	Certificate []byte `json:"certificate,omitempty"` // DER
	CA          []byte `json:"ca,omitempty"`          // DER
	Namespace   string `json:"namespace,omitempty"`
	Error       string `json:"error,omitempty"`
	Hint        string `json:"hint,omitempty"`
}
