package main

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"

	"vksplat/farm/pass"
	"vksplat/farmd/registry"
	"vksplat/internal/fault"
)

// page is Temporal's page: jobs, histories, queues. It shows a pass of role view to the frontend, as anybody could,
// so that the gate refuses what the page should not do. It listens on this machine only, and answers browsers only
// under a name of this machine, so that no site on the web can read it through a visitor.
type page struct {
	address string
	server  *http.Server
}

// startPage serves the page on a port; none if port is 0.
func startPage(port int, reg *registry.Registry, frontend string) (*page, error) {
	if port == 0 {
		return nil, nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, fmt.Sprint(port)))
	if err != nil {
		return nil, &fault.Error{Op: "serve page", Err: err, Hint: "choose another port by --page, or 0 for none",
			Kind: fault.ErrTryAgain}
	}
	log.SetOutput(io.Discard) // where the page's packages tell what they read; nothing else here uses it
	handler, err := pageHandler(reg, frontend)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("serve page: %w", err)
	}
	p := &page{address: listener.Addr().String(), server: &http.Server{Handler: ownHostOnly(handler),
		ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = p.server.Serve(listener) }()
	return p, nil
}

// pageHandler is the page, put together as its own server does it, which would end the process on errors.
func pageHandler(reg *registry.Registry, frontend string) (http.Handler, error) {
	cfg, err := pageConfig(reg, frontend)
	if err != nil {
		return nil, err
	}
	provider, err := config.NewConfigProviderWithRefresh(cfg)
	if err != nil {
		return nil, err
	}
	all, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	assets, err := fs.Sub(all, "local")
	if err != nil {
		return nil, err
	}
	e := echo.New()
	const overTLS = false // the page is on this machine
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure(), csrf.EnsureTokenCookie(overTLS),
		middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, overTLS)))
	route.SetHealthRoute(e)
	if err := route.SetAPIRoutes(e, provider, nil); err != nil {
		return nil, err
	}
	route.SetAuthRoutes(e, provider)
	route.SetUIRoutes(e, "", assets, provider)
	route.SetRenderRoute(e, "/")
	return e, nil
}

// pageConfig has the page show a pass, which exists in this process only.
func pageConfig(reg *registry.Registry, frontend string) (*config.Config, error) {
	cert, err := reg.Page()
	if err != nil {
		return nil, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return nil, err
	}
	text := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return &config.Config{
		TemporalGRPCAddress: frontend,
		EnableUI:            true,
		DefaultNamespace:    namespace,
		DisableNewsFetch:    true,
		DisableWriteActions: true,
		HideLogs:            true,
		CORS:                config.CORS{CookieInsecure: true},
		TLS: config.TLS{
			CaData:                 text("CERTIFICATE", reg.CA().Raw),
			CertData:               text("CERTIFICATE", cert.Leaf.Raw),
			KeyData:                text("PRIVATE KEY", key),
			EnableHostVerification: true,
			ServerName:             pass.ServerName,
		},
	}, nil
}

// ownHostOnly refuses requests that a browser makes under a foreign name for this machine.
func ownHostOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "this page is for this machine: open it as localhost", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
