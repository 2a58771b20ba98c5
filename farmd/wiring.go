package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/rpc/encryption"
	"google.golang.org/grpc"

	"vksplat/farm/pass"
	"vksplat/farmd/gate"
	"vksplat/farmd/registry"
)

// authType marks the claims that come from passes. Temporal's own services have another type, which no certificate
// can give: their frontend makes it.
const authType = "vksplat"

// mapper makes claims of certificates.
type mapper struct{}

func claimMapper(*config.Config) authorization.ClaimMapper { return mapper{} }

func (mapper) GetClaims(info *authorization.AuthInfo) (*authorization.Claims, error) {
	cert := authorization.PeerCert(info.TLSConnection)
	if cert == nil {
		return nil, errors.New("no certificate")
	}
	who, err := pass.Of(cert)
	if err != nil {
		return nil, err
	}
	return &authorization.Claims{Subject: who.Name, AuthType: authType, Extensions: who}, nil
}

// whoOf is the holder of the pass that claims come from.
func whoOf(claims *authorization.Claims) (who pass.Who, is bool) {
	if claims == nil || claims.AuthType != authType {
		return who, false
	}
	who, is = claims.Extensions.(pass.Who)
	return who, is
}

// authorizer asks the gate.
type authorizer struct{ gate *gate.Gate }

func (a authorizer) Authorize(ctx context.Context, claims *authorization.Claims, target *authorization.CallTarget) (
	authorization.Result, error) {
	if claims != nil && claims.AuthType == authorization.InternalPrincipalType &&
		claims.System == authorization.RoleAdmin {
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	}
	who, is := whoOf(claims)
	if !is {
		return authorization.Result{Decision: authorization.DecisionDeny}, nil
	}
	err := a.gate.Check(ctx, who, target.APIName, target.Request)
	var denied *serviceerror.PermissionDenied
	switch {
	case err == nil:
		return authorization.Result{Decision: authorization.DecisionAllow}, nil
	case errors.As(err, &denied): // as a result Temporal writes no line to the log
		return authorization.Result{Decision: authorization.DecisionDeny, Reason: denied.Message}, nil
	}
	return authorization.Result{}, err
}

// intercept seals the tasks in answers, says since when the server is there, and why there is no answer where the disk
// is full.
func intercept(g *gate.Gate, space *room, away *outages) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		claims, _ := ctx.Value(authorization.MappedClaims).(*authorization.Claims)
		who, is := whoOf(claims)
		if is && who.Role != pass.Worker && keeps(info.FullMethod) {
			var end context.CancelFunc
			ctx, end = space.bound(ctx)
			defer end()
		}
		answer, err := handle(ctx, req)
		if is && who.Role == pass.Worker { // now: the server may have slept with the request
			away.tell(ctx)
		}
		switch {
		case is && err == nil:
			g.Seal(who, answer)
		case is:
			err = space.explain(ctx, who, err)
		}
		return answer, err
	}
}

// allTLS is of all ports but the open one, behind which is the frontend.
func allTLS(reg *registry.Registry, proved func(net.Addr) bool) (*encryption.FixedTLSConfigProvider, error) {
	outer, err := outerTLS(reg, proved)
	if err != nil {
		return nil, err
	}
	server, client, err := innerTLS()
	return &encryption.FixedTLSConfigProvider{InternodeServerConfig: server, InternodeClientConfig: client,
		FrontendServerConfig: outer, FrontendClientConfig: client}, err
}

// outerTLS is of the frontend that holders of passes reach. Connections come through package front, which is told which
// have shown a pass; only the server's own page comes past it.
func outerTLS(reg *registry.Registry, proved func(net.Addr) bool) (*tls.Config, error) {
	cert, err := reg.Server()
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    poolOf(reg),
		NextProtos:   []string{"h2"},
	}
	of := c.Clone()
	of.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		own := c.Clone()
		own.VerifyConnection = func(state tls.ConnectionState) error {
			who, err := pass.Of(state.PeerCertificates[0])
			if err == nil {
				err = reg.Welcome(who, state.PeerCertificates[0])
			}
			if err == nil && !reg.IsPage(who) && !proved(hello.Conn.RemoteAddr()) {
				err = errors.New("the connection does not come through the farm's port, or is one too many")
			}
			return err
		}
		return own, nil
	}
	return of, nil
}

// innerTLS is of Temporal's services among themselves. Their ports are open to every program of this machine; the
// authority that they believe exists in this process only, and ends with it.
func innerTLS() (server, client *tls.Config, err error) {
	const name = "vksplat-farmd-inner"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             time.Now().Add(-24 * time.Hour),
		NotAfter:              time.Now().AddDate(30, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	own := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: own, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert},
		&tls.Config{MinVersion: tls.VersionTLS13, Certificates: own, RootCAs: pool, ServerName: name}, nil
}
