package proof

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"vksplat/farm/pass"
)

// A machine joins with a token, once; its pass names what the token granted; it can be renewed and revoked, also
// while a connection is open.
func TestJoinRenewRevoke(t *testing.T) {
	s := serve(t)
	token := s.mustCommand("token", "--role", "submit", "--name", "anna-pc", "--owner", "anna")
	p, err := pass.Join(t.Context(), token, "", s.passDir(), false)
	if err != nil {
		t.Fatal(err)
	}
	if p.Name != "anna-pc" || p.Role != pass.Submit || p.Owner != "anna" || p.Namespace != "vksplat" ||
		p.Address != s.address {
		t.Errorf("joined as %+v", p)
	}
	if _, err := pass.Join(t.Context(), token, "", s.passDir(), false); err == nil || !strings.Contains(err.Error(),
		"used") {
		t.Errorf("a used token: %v", err)
	}
	for _, life := range []string{"0s", "-1h"} {
		if out, err := s.command("token", "--role", "view", "--name", "never", "--expires", life); err == nil {
			t.Errorf("a token for %s: %s", life, out)
		}
	}
	short := s.mustCommand("token", "--role", "view", "--name", "late", "--expires", "1ns")
	if _, err := pass.Join(t.Context(), short, "", s.passDir(), false); err == nil || !strings.Contains(err.Error(),
		"expired") {
		t.Errorf("an expired token: %v", err)
	}
	if out, err := s.command("token", "--role", "view", "--name", "anna-pc"); err == nil {
		t.Errorf("a name twice: %s", out)
	}
	c := s.client(p)
	if _, err := c.CheckHealth(t.Context(), &client.CheckHealthRequest{}); err == nil {
		t.Error("the health service is open")
	}
	if _, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{}); err != nil {
		t.Error(err)
	}
	before := p.Expires
	if err := p.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.Expires.Before(before) {
		t.Errorf("renewed from %s to %s", before, p.Expires)
	}
	s.client(p)
	s.mustCommand("revoke", "anna-pc")
	_, err = c.CountWorkflow(t.Context(),
		&workflowservice.CountWorkflowExecutionsRequest{}) // on the connection that is open
	var denied *serviceerror.PermissionDenied
	if !errors.As(err, &denied) {
		t.Errorf("after revoke: %v", err)
	}
	if err := p.Renew(t.Context()); err == nil {
		t.Error("a revoked pass was renewed")
	}
	if conn, err := tls.Dial("tcp", s.address, withALPN(p.TLS, "h2")); err == nil {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("a revoked pass connects: %v", err)
		}
	}
	if p, err = pass.Join(t.Context(), s.mustCommand("token", "--role", "view", "--name", "anna-pc"), "",
		s.passDir(), false); err != nil {
		t.Fatalf("the name of a revoked pass: %v", err)
	}
	s.client(p)
}

// A token of one farm is no key to another, nor is a pass.
func TestForeignFarm(t *testing.T) {
	s, other := serve(t), serve(t)
	own, err := pass.ParseToken(s.mustCommand("token", "--role", "view", "--name", "eve"))
	if err != nil {
		t.Fatal(err)
	}
	own.Address = other.address // somebody between
	if _, err := pass.Join(t.Context(), own.String(), "", s.passDir(), false); err == nil ||
		!strings.Contains(err.Error(), "not the farm") {
		t.Errorf("joined a farm that is not the token's: %v", err)
	}
	foreign := other.join("--role", "admin", "--name", "root")
	config := foreign.TLS.Clone()
	config.RootCAs, config.InsecureSkipVerify = nil, true
	for name, config := range map[string]*tls.Config{
		"a foreign authority": config,
		"no certificate":      {InsecureSkipVerify: true, NextProtos: []string{"h2"}},
	} {
		conn, err := tls.Dial("tcp", s.address, withALPN(config, "h2"))
		if err != nil {
			continue // refused at once
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s is let in: %v", name, err)
		}
	}
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("plaintext is answered: %d bytes, %v", n, err)
	}
}

func withALPN(config *tls.Config, protocol string) *tls.Config {
	config = config.Clone()
	config.NextProtos = []string{protocol}
	return config
}

// What is wrong with the server's own files is said to whoever looks after it, and to nobody else.
func TestOddFiles(t *testing.T) {
	s := serve(t)
	token := s.mustCommand("token", "--role", "view", "--name", "wall")
	files, err := filepath.Glob(filepath.Join(s.data, "tokens", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files { // serve has made some, too
		if err := errors.Join(os.Remove(file), os.Mkdir(file, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := pass.Join(t.Context(), token, "", s.passDir(), false); err == nil ||
		strings.Contains(err.Error(), "tokens") || !strings.Contains(err.Error(), "its files") {
		t.Errorf("a stranger is told: %v", err)
	}
	s.says("is a directory")
}

// The help of serve does not show the password that a variable has.
func TestHelpShowsNoPassword(t *testing.T) {
	cmd := exec.Command(program, "serve", "--help")
	cmd.Env = append(os.Environ(), "VKSPLAT_FARM_POSTGRES=postgres://farm:secret@db/farm")
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "secret") {
		t.Errorf("%v: %s", err, out)
	}
}
