package view

import (
	"crypto/subtle"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	tokenKey   = "token"   // in the address
	cookieName = "vksplat" // of the session's secret
)

// refusal is why a request is not answered.
type refusal struct {
	status int
	text   string
}

// guarded is the handler of all requests. It answers those that come from a page of this server or from no page at all,
// under a name that can be this machine's, and that show the token or the cookie that the token brought. What changes
// something (HandlePost) must come from a page of this server.
func (s *Server) guarded() http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := &steady{plain, http.NewResponseController(plain)}
		w.wait() // also for answers without a body, after a request whose time is over
		h := w.Header()
		h.Set("Content-Security-Policy", pagePolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if no := s.refuses(r); no != nil {
			if no.status == http.StatusMethodNotAllowed {
				h.Set("Allow", s.methods())
			}
			h.Set("Connection", "close")
			http.Error(w, no.text, no.status)
			return
		}
		secretShown(r.Context())
		if name, below := strings.CutPrefix(r.URL.Path, s.prefix); below {
			if r.Method == http.MethodPost {
				r.Body = &steadyBody{r.Body, w.control}
			}
			s.handlerOf(r.Method, name).ServeHTTP(w, r)
			return
		}
		s.enter(w, r.URL.Query())
	})
}

// refuses says why a request is not answered, nil if it is. One that shows no secret learns nothing about what there
// is.
func (s *Server) refuses(r *http.Request) *refusal {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads && (r.Method != http.MethodPost || len(s.actions) == 0) {
		return &refusal{http.StatusMethodNotAllowed, "only " + s.methods() + " are known here"}
	}
	if !s.knows(r.Host) {
		return &refusal{http.StatusForbidden, "this server does not have that name"}
	}
	entry := r.URL.Path == "/"
	if !s.ownOrigin(r, entry && reads) || !reads && r.Header.Get("Origin") == "" {
		return &refusal{http.StatusForbidden, "requests from pages of other servers are refused"}
	}
	if entry && reads {
		if !s.admits(r.URL.Query().Get(tokenKey)) {
			return &refusal{http.StatusForbidden,
				"open the address that vksplat printed: it contains the access token"}
		}
		return nil
	}
	if !s.hasCookie(r) {
		return &refusal{http.StatusForbidden,
			"open the address that vksplat printed: it contains the access token"}
	}
	name, below := strings.CutPrefix(r.URL.Path, s.prefix)
	if !below || s.handlerOf(r.Method, name) == nil {
		return &refusal{http.StatusNotFound, "there is nothing here"}
	}
	return nil
}

// handlerOf finds the handler of a method at a name below prefix, nil if there is none.
func (s *Server) handlerOf(method, name string) http.Handler {
	s.mu.RLock()
	defer s.mu.RUnlock()
	of := s.handlers
	if method == http.MethodPost {
		of = s.actions
	}
	if h, known := of[name]; known {
		return h
	}
	if first, _, below := strings.Cut(name, "/"); below {
		return of[first+"/"]
	}
	return nil
}

// methods lists those that the server knows.
func (s *Server) methods() string {
	if len(s.actions) > 0 {
		return "GET, HEAD, POST"
	}
	return "GET, HEAD"
}

// admits looks at both tokens, and takes the one that works once.
func (s *Server) admits(token string) bool {
	lasting, once := same(token, s.token), same(token, s.once)
	return lasting || once && s.used.CompareAndSwap(false, true)
}

// same compares secrets in a time that does not depend on where they differ.
func same(got, want string) bool { return subtle.ConstantTimeCompare([]byte(got), []byte(want)) == 1 }

// hasCookie looks through all cookies of our name: a browser may also hold another server's.
func (s *Server) hasCookie(r *http.Request) bool {
	found := false
	for _, c := range r.CookiesNamed(cookieName) {
		found = same(c.Value, s.session) || found
	}
	return found
}

// knows reports whether a Host header can be this server's. A page whose name was made to lead here (DNS rebinding)
// shows that name, so that names are refused but those that this machine surely has; the port is not looked at, because
// a tunnel's end has another.
func (s *Server) knows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.IsLoopback() || !s.loopback
	}
	if strings.EqualFold(host, "localhost") || s.host != "" && strings.EqualFold(host, s.host) {
		return true
	}
	own, err := os.Hostname()
	return !s.loopback && err == nil && own != "" && strings.EqualFold(host, own)
}

// ownOrigin reports whether a request comes from a page of this server, or from the user. A link that the user follows
// from elsewhere may only lead to the entry, where the token counts.
func (s *Server) ownOrigin(r *http.Request, entry bool) bool {
	if origin := r.Header.Get("Origin"); origin != "" && origin != s.scheme+"://"+r.Host {
		return false
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return true
	}
	return entry && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// enter gives the cookie and leads to the page. It is a page itself and no redirection: after a link from elsewhere,
// browsers keep a strict cookie back along the whole chain of redirections. What the address holds beside the token is
// the page's, as "webgl".
func (s *Server) enter(w http.ResponseWriter, query url.Values) {
	query.Del(tokenKey)
	page := url.URL{Path: s.prefix, RawQuery: query.Encode()}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: s.session, Path: s.prefix, HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: s.Encrypted()})
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// The client has gone if this fails.
	_, _ = fmt.Fprintf(w, "<!doctype html><meta charset=\"utf-8\"><title>vksplat</title><link rel=\"icon\" "+
		"href=\"data:,\"><meta http-equiv=\"refresh\" content=\"0;url=%s\">\n", html.EscapeString(page.String()))
}

// steady gives an answer as long as it takes, as long as some of it is taken all the time.
type steady struct {
	http.ResponseWriter
	control *http.ResponseController
}

// Unwrap lets http.ResponseController find what is below, as for taking over the connection.
func (s *steady) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// wait begins the time in which something must be taken. A connection that knows none is a test's.
func (s *steady) wait() { _ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) }

func (s *steady) Write(p []byte) (int, error) {
	s.wait()
	return s.ResponseWriter.Write(p)
}

// steadyBody takes a request's body as long as it takes, as long as some of it comes all the time.
type steadyBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *steadyBody) Read(p []byte) (int, error) {
	_ = b.control.SetReadDeadline(time.Now().Add(readTimeout)) // a connection that knows none is a test's
	return b.ReadCloser.Read(p)
}
