package view

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
)

// Relay passes requests on to a Server of another process of this program, so that a browser needs one address alone.
// Both servers guard: this one has judged a request before the other gets it.
type Relay struct {
	proxy *httputil.ReverseProxy
}

// checkPlace refuses addresses that are not those of a Server on this machine's loopback interface: what a relay shows
// is a page of its own server to the browser.
func checkPlace(u *url.URL) error {
	at, err := netip.ParseAddrPort(u.Host)
	if err != nil || u.Scheme != "http" || u.User != nil || !at.Addr().IsLoopback() || at.Addr().Is4In6() {
		return errors.New("it does not listen on a loopback address")
	}
	return nil
}

// NewRelay shows the token in an address that a process of this program printed, as a browser does, and keeps the
// cookie, which names the path of the pages, too.
func NewRelay(ctx context.Context, address string) (*Relay, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err == nil {
		err = checkPlace(r.URL)
	}
	if err != nil {
		return nil, fmt.Errorf("relay viewer: %w", err)
	}
	transport := &http.Transport{} // of its own: no proxy of the environment, and as many connections as it likes
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("relay viewer: %w", err)
	}
	_ = answer.Body.Close() // it is for browsers
	cookies := answer.Cookies()
	if len(cookies) != 1 || cookies[0].Name != cookieName {
		return nil, fmt.Errorf("relay viewer: its server answers %s", answer.Status)
	}
	r.URL.Path = cookies[0].Path
	return &Relay{proxyTo(r.URL, cookies[0].Value, transport)}, nil
}

// proxyTo is the proxy of what is below an address.
func proxyTo(at *url.URL, session string, transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{Transport: transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			out := p.Out
			out.URL.Scheme, out.URL.Host, out.Host = at.Scheme, at.Host, at.Host
			out.URL.Path, out.URL.RawPath = at.Path+p.In.URL.Path, ""
			if out.Header.Get("Origin") != "" {
				out.Header.Set("Origin", at.Scheme+"://"+at.Host)
			}
			out.Header.Set("Cookie", (&http.Cookie{Name: cookieName, Value: session}).String())
		},
		ModifyResponse: func(r *http.Response) error {
			for name := range r.Header { // the guard of this server has set them
				if strings.HasPrefix(name, "Cross-Origin-") || strings.HasPrefix(name, "X-") ||
					name == "Content-Security-Policy" || name == "Referrer-Policy" || name == "Set-Cookie" {
					r.Header.Del(name)
				}
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, "the viewer has ended", http.StatusBadGateway)
		},
	}
}

// Pass answers a request by what the other server has at name. That server bounds the body.
func (l *Relay) Pass(w http.ResponseWriter, r *http.Request, name string) {
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = name, ""
	w.Header().Del("Cache-Control") // the other server's counts
	l.proxy.ServeHTTP(w, r)
}
