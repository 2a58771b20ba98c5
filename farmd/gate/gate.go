// Package gate decides what the holder of a pass may ask of the farm's Temporal server.
//
// Everything is refused that is not listed: methods by role (methods.go), fields of requests that change something, and
// of their values what concerns others: the owner in a workflow's id, the pool in a queue's name, task tokens of other
// workers. A method or field that a later version of Temporal adds is therefore refused until somebody lists it. The
// server's own services come through another frontend, which nobody else can reach.
package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/api/serviceerror"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"vksplat/farm/pass"
)

// Gate holds what the decisions need.
type Gate struct {
	Namespace string
	FlowQueue string // where the server alone runs workflows
	FlowType  string // of the workflows that people start
	// OpenJobs counts the jobs of an owner that have not ended. It is asked before another one starts.
	OpenJobs func(ctx context.Context, owner string) (int, error)
	Revoked  func(id string) bool
	HasPool  func(name string) bool // of a pass of the farm, or a token

	seal  []byte
	usage usage
	names names
}

// New makes a gate whose seals are made with a key.
func New(seal []byte) *Gate { return &Gate{seal: seal} }

// call is a request under decision.
type call struct {
	gate *Gate
	ctx  context.Context
	who  pass.Who
	req  proto.Message
}

// rule says who may call a method, and with what.
type rule struct {
	roles string // first letters: v s w a
	// fields are those that the request may set, without namespace and identity; nil allows all: the method changes
	// nothing.
	fields []string
	// dropped are fields that SDKs set and that concern others, such as how fast a queue is served: they are cleared.
	dropped []string
	size    int // most bytes of the request; 0 means maxRead
	check   func(c *call) error
}

// maxRead bounds requests that change nothing, in bytes.
const maxRead = 16 << 10

// Check decides: nil allows the request, in which the caller's name then is what its pass says. The context is the
// request's, which ends with it. Method is the full name, as gRPC has it; streams have no request.
func (g *Gate) Check(ctx context.Context, who pass.Who, method string, request any) error {
	if g.Revoked(who.ID) {
		return refuse("the pass of %s was revoked", who.Name)
	}
	name, is := strings.CutPrefix(method, servicePrefix)
	rule, known := rules[name]
	req, isMessage := request.(proto.Message)
	if !is || !known || !isMessage || !strings.Contains(rule.roles, letter(who.Role)) {
		return refuse("a pass of role %s does not allow %s", who.Role, strings.TrimPrefix(method, servicePrefix))
	}
	if err := g.usage.take(ctx, who, name); err != nil {
		return err
	}
	if n, most := proto.Size(req), max(rule.size, maxRead); n > most {
		return serviceerror.NewInvalidArgument(fmt.Sprintf("the request has %d bytes, more than %d", n, most))
	}
	if err := g.checkNamespace(req); err != nil {
		return err
	}
	rewrite(req, who, rule.dropped)
	if rule.fields != nil {
		if field := unlisted(req, rule.fields); field != "" {
			return refuse("%s may not set %s", name, field)
		}
	}
	if rule.check == nil {
		return nil
	}
	return rule.check(&call{g, ctx, who, req})
}

// rewrite clears fields, and makes the name that the caller gives itself that of its pass: histories say who did
// what.
func rewrite(req proto.Message, who pass.Who, dropped []string) {
	m := req.ProtoReflect()
	for _, name := range dropped {
		m.Clear(m.Descriptor().Fields().ByName(protoreflect.Name(name)))
	}
	if f := m.Descriptor().Fields().ByName("identity"); f != nil && f.Kind() == protoreflect.StringKind {
		m.Set(f, protoreflect.ValueOfString(who.Name))
	}
}

// letter is a role in a rule.
func letter(r pass.Role) string {
	if r == "" {
		return "none"
	}
	return string(r[0])
}

// refuse is the error of what is not allowed. Nobody tries again after it.
func refuse(format string, args ...any) error {
	return serviceerror.NewPermissionDenied(fmt.Sprintf(format, args...), "")
}

// checkNamespace refuses requests for other namespaces than the farm's. Requests without the field are for none.
func (g *Gate) checkNamespace(req proto.Message) error {
	m := req.ProtoReflect()
	field := m.Descriptor().Fields().ByName("namespace")
	if field == nil {
		return nil
	}
	if field.Kind() != protoreflect.StringKind || m.Get(field).String() != g.Namespace {
		return refuse("only the namespace %s is open", g.Namespace)
	}
	return nil
}

// unlisted names a field that is set and not among those listed, "" if there is none.
func unlisted(req proto.Message, listed []string) (found string) {
	m := req.ProtoReflect()
	if len(m.GetUnknown()) > 0 {
		return "a field of a later version"
	}
	m.Range(func(f protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
		name := string(f.Name())
		if name != "namespace" && name != "identity" && !slices.Contains(listed, name) {
			found = name
		}
		return found == ""
	})
	return found
}
