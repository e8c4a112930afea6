package cli_test

import (
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// wire is a client on the standard streams of a program.
type wire struct {
	in      io.WriteCloser
	mu      sync.Mutex
	waiting map[string]chan []byte
}

func dial(b *testing.B, program string, args ...string) *wire {
	b.Helper()
	cmd := exec.Command(program, args...)
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	w := &wire{in: in, waiting: map[string]chan []byte{}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		lines := jsonrpc.NewReader(out, 0)
		for {
			line, err := lines.ReadLine()
			if err != nil {
				return
			}
			if m, err := jsonrpc.Split(line); err == nil && m.Kind == jsonrpc.Response {
				w.mu.Lock()
				w.waiting[string(m.ID)] <- m.Result
				w.mu.Unlock()
			}
		}
	}()
	b.Cleanup(func() {
		in.Close()
		<-ended
		require.NoError(b, cmd.Wait())
	})
	return w
}

func (w *wire) call(id int, method, params string) []byte {
	key := fmt.Sprint(id)
	answer := make(chan []byte, 1)
	w.mu.Lock()
	w.waiting[key] = answer
	fmt.Fprintf(w.in, `{"jsonrpc":"2.0","id":%s,"method":"%s","params":%s}`+"\n", key, method, params) //nolint:errcheck // the answer tells
	w.mu.Unlock()
	result := <-answer
	w.mu.Lock()
	delete(w.waiting, key)
	w.mu.Unlock()
	return result
}

// BenchmarkHop measures calls of an echo, made directly and through the host,
// with 1 and with 64 in flight, and a 1 MiB result.
func BenchmarkHop(b *testing.B) {
	b.Setenv("XDG_CONFIG_HOME", b.TempDir())
	config, state := b.TempDir()+"/c.json", b.TempDir()
	// As many at once as our own tools say of themselves; the default is 5.
	require.NoError(b, writeFile(config, `{"servers":{"fix":{"command":"fixture","args":["-era","legacy"],"max_concurrent":64}}}`))
	echo := `{"name":"%s","arguments":{"text":"` + strings.Repeat("x", 40) + `"}}`
	blob := `{"name":"%s","arguments":{"n":1048576}}`
	for _, way := range []struct {
		name, prefix, program string
		args                  []string
	}{
		{"direct", "", "fixture", []string{"-era", "legacy"}},
		{"host", "fix__", "mcp-host", []string{"stdio", "--config", config, "--state", state}},
	} {
		for _, load := range []struct {
			name, params, tool string
			flight             int
		}{{"echo-1", echo, "echo", 1}, {"echo-64", echo, "echo", 64}, {"1MiB", blob, "blob", 1}} {
			b.Run(load.name+"/"+way.name, func(b *testing.B) {
				w := dial(b, way.program, way.args...)
				w.call(0, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}`)
				params := fmt.Sprintf(load.params, way.prefix+load.tool)
				w.call(1, "tools/call", params)
				runLoad(b, w, params, load.flight)
			})
		}
	}
}

func runLoad(b *testing.B, w *wire, params string, flight int) {
	times := make([][]time.Duration, flight)
	b.ResetTimer()
	begin := time.Now()
	var wg sync.WaitGroup
	for f := range flight {
		wg.Go(func() {
			for i := f; i < b.N; i += flight {
				at := time.Now()
				w.call(i+2, "tools/call", params)
				times[f] = append(times[f], time.Since(at))
			}
		})
	}
	wg.Wait()
	all := slices.Concat(times...)
	slices.Sort(all)
	b.ReportMetric(float64(all[len(all)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "calls/s")
}
