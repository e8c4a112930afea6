package upstream_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// Close leaves no goroutine of a call that is under way, nor of a message that the server
// does not read. That Close waits for them is tested in leak_internal_test.go.
func TestCloseLeavesNoGoroutine(t *testing.T) {
	mcpkittest.NoLeaks(t, "github.com/toolroom-mcp/toolroom/host/internal/upstream")
	m := mcpkittest.NewMock("m")
	m.AddTool("a", "")
	deaf := make(chan struct{})
	s, err := upstream.New(upstream.Config{Name: "m", Serve: func(ctx context.Context, in io.Reader, out io.Writer) error {
		stops := &stopsReading{Reader: in, at: `"tools/call"`, ctx: ctx, reached: deaf}
		return m.Serve(ctx, stops, out)
	}}, nil)
	require.NoError(t, err)
	_, err = s.Tools(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	called := make(chan struct{})
	for range 3 {
		go func() {
			s.Call(ctx, request("a", `{"name":"a","arguments":{"x":"`+strings.Repeat("x", 1<<20)+`"}}`)) //nolint:errcheck // it is not answered
			called <- struct{}{}
		}()
	}
	<-deaf
	s.Close()
	for range 3 {
		<-called
	}
	cancel()
}

// stopsReading is an input that ends to be read at a text.
type stopsReading struct {
	io.Reader
	at      string
	ctx     context.Context
	reached chan struct{}
}

func (r *stopsReading) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if strings.Contains(string(p[:n]), r.at) {
		close(r.reached)
		<-r.ctx.Done()
		return 0, io.EOF
	}
	return n, err
}
