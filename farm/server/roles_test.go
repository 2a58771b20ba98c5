package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"vksplat/farm/queue"
)

// TestRoles tries on the wire what each role may and may not do.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	clients := map[Role]*nats.Conn{}
	for _, role := range allRoles {
		clients[role] = raw(t, s, role)
	}
	checkRoles(t, clients)
}

// TestClusterTokens does the same with a plain NATS server whose configuration has the lines that were printed with the tokens.
func TestClusterTokens(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	tokens, text := map[Role]queue.Token{}, "listen: "+strconv.Quote(address)+"\nauthorization { users: [\n"
	for _, role := range allRoles {
		token, line, err := NewClusterToken("nats://"+address, "", role, "of "+string(role))
		if err != nil {
			t.Fatal(err)
		}
		tokens[role] = token
		text += line + "\n"
	}
	file := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(file, []byte(text+"] }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := natsserver.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.NoLog = true, true
	s, err := natsserver.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer s.Shutdown()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	if _, err := nats.Connect("nats://" + address); !errors.Is(err, nats.ErrAuthorization) {
		t.Error("anonymous:", err)
	}
	clients := map[Role]*nats.Conn{}
	for role, token := range tokens {
		file := filepath.Join(t.TempDir(), "token")
		if err := writeJSON(file, token); err != nil {
			t.Fatal(err)
		}
		// As commands do with --nats and --nats-creds.
		nc, err := queue.DialCluster(token.URL, file, string(role), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		clients[role] = nc
	}
	checkRoles(t, clients)
}

var allRoles = []Role{View, Submit, Work, Admin}

func checkRoles(t *testing.T, clients map[Role]*nats.Conn) {
	t.Helper()
	all := allRoles
	for _, test := range []struct {
		what    string
		by      []Role
		subject string
		do      func(*nats.Conn, string) error
	}{
		{"read entries", all, "$JS.API.DIRECT.GET.KV_task", publish},
		{"hear changes", all, "ev.task.>", listen},
		{"hear progress", all, "prog.>", listen},
		{"submit jobs", []Role{Submit, Admin}, "$KV.job.a", publish},
		{"write entries", []Role{Submit, Work, Admin}, "$KV.task.a.0", publish},
		{"take tasks", []Role{Work, Admin}, "$JS.API.CONSUMER.MSG.NEXT.JOBS.high-any", publish},
		{"answer messages", []Role{Work, Admin}, "$JS.ACK.JOBS.high-any.1.1.1.1.0", publish},
		{"say it lives", []Role{Work, Admin}, "$KV.node.n", publish},
		{"log", []Role{Work, Admin}, "log.a.0", publish},
		{"show pictures", []Role{Work, Admin}, "$KV.preview.a.0", publish},
		{"look at pictures", all, "$JS.API.DIRECT.GET.KV_preview.$KV.preview.a.0", publish},
		{"list pictures", all, "$JS.API.STREAM.INFO.KV_preview", publish},
		{"call workers", []Role{Admin}, "jobs.high.any.a.0", publish},
		{"order nodes", []Role{Admin}, "$KV.ctl.node.n", publish},
		{"reconcile", []Role{Admin}, "$KV.lead.reconciler", publish},
		{"make consumers", []Role{Admin}, "$JS.API.CONSUMER.CREATE.KV_task.x", publish},
		{"delete messages", []Role{Admin}, "$JS.API.STREAM.MSG.DELETE.KV_task", publish},
		{"purge streams", []Role{Admin}, "$JS.API.STREAM.PURGE.KV_task", publish},
		{"delete streams", []Role{Admin}, "$JS.API.STREAM.DELETE.KV_nothing", publish},
		{"change streams", []Role{Admin}, "$JS.API.STREAM.UPDATE.KV_nothing", publish},
		{"hear others' answers", []Role{Admin}, queue.InboxOf("UOTHER") + ".>", listen},
		{"hear everything", []Role{Admin}, ">", listen},
		{"hear writes", []Role{Admin}, "$KV.>", listen},
	} {
		for _, role := range all {
			nc := clients[role]
			if err := errors.Join(test.do(nc, test.subject), nc.Flush()); err != nil {
				t.Fatal(err)
			}
			// The server's refusal, which names the subject, came before its answer to the flush.
			last := nc.LastError()
			refused := errors.Is(last, nats.ErrPermissionViolation) && strings.Contains(last.Error(), strconv.Quote(test.subject))
			if may := slices.Contains(test.by, role); may == refused {
				t.Errorf("%s may %s: %v, the server says %v", role, test.what, may, last)
			}
		}
	}
}

func publish(nc *nats.Conn, subject string) error {
	return nc.PublishRequest(subject, nc.NewInbox(), []byte("{}"))
}

func listen(nc *nats.Conn, subject string) error {
	_, err := nc.SubscribeSync(subject)
	return err
}
