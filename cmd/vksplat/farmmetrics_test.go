package main

import (
	"context"
	"errors"
	"testing"
)

// TestMetricsAddress refuses addresses that other machines reach, where no token is asked for.
func TestMetricsAddress(t *testing.T) {
	for address, good := range map[string]bool{
		"": true, "127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true,
		":9464": false, "0.0.0.0:9464": false, "[::]:9464": false, "192.0.2.1:9464": false, "example.org:9464": false, "127.0.0.1": false, "x": false,
	} {
		ctx, stop := context.WithCancelCause(t.Context())
		err := serveMetrics(ctx, nil, address, stop)
		var u *usageError
		if refused := errors.As(err, &u); refused == good && address != "[::1]:0" { // which not every machine has
			t.Errorf("%q: %v", address, err)
		}
		stop(nil)
	}
}
