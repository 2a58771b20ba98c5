// Package wiretest plays the frontend of Temporal's server for tests, by gRPC's own library and the messages of
// Temporal's API: what package wire says is read by others than who wrote it.
package wiretest

import (
	"context"
	"net"
	"reflect"
	"sync"
	"testing"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

// Server is the frontend. What it is asked is answered by the functions that Handle was given.
type Server struct {
	Address string

	t       testing.TB
	options []grpc.ServerOption
	mutex   sync.Mutex
	server  *grpc.Server // nil while it is down
	answers map[reflect.Type]func(context.Context, any) (any, error)
}

// Start begins to serve, until the test ends.
func Start(t testing.TB, options ...grpc.ServerOption) *Server {
	t.Helper()
	s := &Server{Address: "127.0.0.1:0", t: t, options: options,
		answers: map[reflect.Type]func(context.Context, any) (any, error){}}
	Handle(s, func(context.Context, *workflowservice.DescribeNamespaceRequest) (
		*workflowservice.DescribeNamespaceResponse, error) {
		return &workflowservice.DescribeNamespaceResponse{}, nil
	})
	s.Up()
	t.Cleanup(s.Down)
	return s
}

// Handle says how requests of a type are answered. What nobody handles is unimplemented.
func Handle[Req, Answer any](s *Server, answer func(context.Context, Req) (Answer, error)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.answers[reflect.TypeFor[Req]()] = func(ctx context.Context, req any) (any, error) {
		return answer(ctx, req.(Req))
	}
}

// Up serves at the same address as before.
func (s *Server) Up() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.Address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.Address = l.Addr().String()
	s.server = grpc.NewServer(append([]grpc.ServerOption{grpc.UnaryInterceptor(s.take)}, s.options...)...)
	workflowservice.RegisterWorkflowServiceServer(s.server, workflowservice.UnimplementedWorkflowServiceServer{})
	go func(server *grpc.Server) { _ = server.Serve(l) }(s.server) // until Down
}

// Down ends all connections.
func (s *Server) Down() {
	s.mutex.Lock()
	server := s.server
	s.server = nil
	s.mutex.Unlock()
	if server != nil {
		server.Stop()
	}
}

func (s *Server) take(ctx context.Context, req any, _ *grpc.UnaryServerInfo, other grpc.UnaryHandler) (any, error) {
	s.mutex.Lock()
	answer := s.answers[reflect.TypeOf(req)]
	s.mutex.Unlock()
	if answer == nil {
		return other(ctx, req)
	}
	r, err := answer(ctx, req)
	if err != nil {
		return nil, serviceerror.ToStatus(err).Err()
	}
	return r, nil
}
