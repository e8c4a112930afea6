package app

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/telemetry/prometheus"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// ServeStdio serves one MCP client on a pair of streams, one JSON-RPC message a line. It returns
// nil when in ends and all answers are written, or when ctx ends; then running calls are cancelled.
func (h *Host) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	h.core.StartBackground()
	err := h.core.Gateway.ServeStdio(ctx, in, out, func(string, ...any) {})
	if errors.Is(err, wire.ErrStopped) || ctx.Err() != nil {
		return nil
	}
	return err
}

// HTTPOptions configure ServeHTTP.
type HTTPOptions struct {
	// Token is required of every request as "Authorization: Bearer TOKEN". "" requires none.
	Token string
	// Hosts are further values of the header Host that are accepted, NAME or NAME:PORT. Without them
	// only the names and addresses of this machine are accepted, which keeps out web
	// pages whose names resolve to this machine (DNS rebinding).
	Hosts []string
}

// ServeHTTP serves MCP over streamable HTTP at /mcp, the tools of a profile at /mcp/PROFILE,
// metrics at /metrics and the state of the host at /healthz, until ctx ends. Then it waits up
// to three seconds for running calls, closes the listener and returns nil.
func (h *Host) ServeHTTP(ctx context.Context, listener net.Listener, o HTTPOptions) error {
	handler := h.core.Gateway.HTTP(gateway.HTTPConfig{
		Token: o.Token, Hosts: gateway.HostNames(listener.Addr().String(), listener.Addr(), o.Hosts),
		ID: h.core.ID(), Metrics: h.core.Metrics, MetricsType: prometheus.ContentType,
	})
	server := gateway.NewHTTPServer(handler)
	h.core.StartBackground()
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	var err error
	select {
	case err = <-done:
		gateway.Shutdown(server, handler) //nolint:errcheck // the listener has failed already
	case <-ctx.Done():
		err = gateway.Shutdown(server, handler)
		<-done
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}
