package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/server"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// BenchmarkWire compares, in one run, over real pipes, the echo tool, at
// several calls in flight: mcp-go's own stdio server ("plain"), the same
// server with ServeStdio ("mcpkit"), and a tool made by NewTool, which also
// checks its arguments ("tool"). One operation is one call.
func BenchmarkWire(b *testing.B) {
	servers := []struct {
		name  string
		serve func(ctx context.Context, in io.Reader, out io.Writer) error
	}{
		{"plain", func(ctx context.Context, in io.Reader, out io.Writer) error {
			return server.NewStdioServer(newServer()).Listen(ctx, in, out)
		}},
		{"mcpkit", func(ctx context.Context, in io.Reader, out io.Writer) error {
			return wire.ServeStdio(ctx, newServer(), in, out, wire.ServeOptions{})
		}},
	}
	servers = append(servers, struct {
		name  string
		serve func(ctx context.Context, in io.Reader, out io.Writer) error
	}{"tool", func(ctx context.Context, in io.Reader, out io.Writer) error {
		return wire.ServeStdio(ctx, echoServer(b), in, out, wire.ServeOptions{})
	}})
	for _, size := range []int{64, 64 << 10} {
		for _, flight := range []int{1, 8, 64} {
			for _, s := range servers {
				b.Run(fmt.Sprintf("%dB/%d/%s", size, flight, s.name), func(b *testing.B) {
					benchmarkWire(b, size, flight, s.serve)
				})
			}
		}
	}
}

// echoServer returns a server with an echo tool made by mcpkit.
func echoServer(b *testing.B) *server.MCPServer {
	type args struct {
		Text string `json:"text" jsonschema:"what to say"`
	}
	echo, err := mcpkit.NewTool(mcpkit.Def{Name: "echo", Title: "Echo", Description: "Echoes.", MaxTokens: 1 << 18},
		func(_ context.Context, a args) (*mcpkit.Result, error) { return &mcpkit.Result{Text: a.Text}, nil })
	require.NoError(b, err)
	return mcpkit.NewCommand("echo", "Echo", "").Server(echo)
}

func benchmarkWire(b *testing.B, size, flight int, serve func(context.Context, io.Reader, io.Writer) error) {
	inRead, inWrite, err := os.Pipe()
	require.NoError(b, err)
	outRead, outWrite, err := os.Pipe()
	require.NoError(b, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := serve(context.Background(), inRead, outWrite); err != nil {
			b.Error(err)
		}
		outWrite.Close()
	}()
	payload := strings.Repeat("x", size)
	request := func(id int) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":%q}}}`+"\n", id, payload)
	}
	tokens := make(chan struct{}, flight)
	answered := make(chan struct{})
	b.ReportAllocs()
	b.ResetTimer()
	go func() {
		defer close(answered)
		out := bufio.NewReaderSize(outRead, 1<<20)
		for range b.N {
			line, err := out.ReadSlice('\n')
			if err != nil || !bytes.Contains(line, []byte(`"result"`)) {
				b.Errorf("%.100s: %v", line, err)
				return
			}
			<-tokens
		}
	}()
	for i := range b.N {
		tokens <- struct{}{}
		if _, err := inWrite.Write(request(i)); err != nil {
			b.Fatal(err)
		}
	}
	<-answered
	b.StopTimer()
	inWrite.Close()
	<-served
	inRead.Close()
	outRead.Close()
}
