package upstream

import (
	"context"
	"io"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// longer is the time that a goroutine runs on after its connection could have
// ended. A connection that does not wait for the goroutine ends before it.
const longer = 50 * time.Millisecond

// stuckWire is a wire on which a ping is being sent until the wire is closed, and longer.
type stuckWire struct {
	pinging, over chan struct{}
	once          sync.Once
	returned      atomic.Bool
}

func (w *stuckWire) send([]byte) error {
	w.once.Do(func() { close(w.pinging) })
	<-w.over
	time.Sleep(longer)
	w.returned.Store(true)
	return nil
}

func (w *stuckWire) close() { close(w.over) }

func (w *stuckWire) run(*conn) error {
	<-w.over
	return toolerr.New(toolerr.ServerOffline, "the server ended")
}

func (w *stuckWire) describe() wireDescription { return wireDescription{} }

// A connection that is gone has no watchdog any more.
func TestTheWatchdogIsWaitedFor(t *testing.T) {
	w := &stuckWire{pinging: make(chan struct{}), over: make(chan struct{})}
	c := newConn(Config{Name: "m", QuietTime: time.Millisecond}, w)
	_, err := c.addPending(&pendingRequest{request: &request{}})
	require.NoError(t, err)
	<-w.pinging
	c.fail(toolerr.New(toolerr.ServerOffline, "it is not wanted any more"))
	<-c.ended
	require.True(t, w.returned.Load(), "the watchdog was still at work")
}

// longerPipe is a server's input without deadlines. A write to it takes until closed is
// closed, and longer.
type longerPipe struct {
	slowPipe
	closed chan struct{}
}

func newLongerPipe() *longerPipe {
	p := &longerPipe{slowPipe: slowPipe{began: make(chan struct{}), release: make(chan struct{})}, closed: make(chan struct{})}
	go func() {
		<-p.closed
		time.Sleep(longer)
		close(p.release)
	}()
	return p
}

// A connection that is gone has no goroutine any more that writes to its server.
func TestTheWriterOfAConnectionIsWaitedFor(t *testing.T) {
	cfg := Config{Name: "m", WriteTimeout: time.Hour, QuietTime: time.Hour, CloseGrace: time.Second, TermGrace: time.Second, MaxLine: 1 << 20}
	wires := map[string]func(t *testing.T, w *writer) wire{
		"in process": func(_ *testing.T, w *writer) wire {
			cfg := cfg
			cfg.Serve = func(_ context.Context, in io.Reader, _ io.Writer) error {
				_, err := io.Copy(io.Discard, in)
				return err
			}
			p := newInProcess(cfg)
			p.writer = w
			return p
		},
		"program": func(t *testing.T, w *writer) wire {
			self, err := os.Executable()
			require.NoError(t, err)
			cfg := cfg
			cfg.Command, cfg.Env = []string{self, faultserver.Arg}, os.Environ()
			spawner := NewSpawner([]string{self, "guard"})
			t.Cleanup(spawner.Close)
			s, err := startStdio(cfg, spawner)
			require.NoError(t, err)
			s.writer = w
			return s
		},
	}
	for name, start := range wires {
		t.Run(name, func(t *testing.T) {
			p := newLongerPipe()
			c := newConn(cfg, start(t, newWriter(p, time.Hour)))
			require.True(t, c.send([]byte("x\n")))
			<-p.began
			c.fail(toolerr.New(toolerr.ServerOffline, "it is not wanted any more"))
			close(p.closed)
			<-c.ended
			require.True(t, p.done.Load(), "the writer was still at work")
		})
	}
}

// SharedServers that are closed have no goroutine any more that watches a process.
func TestTheGoroutinesOfASharedProcessAreWaitedFor(t *testing.T) {
	for range 200 { // without the wait, it is left only sometimes
		p := NewSharedServers(SharedConfig{})
		process := newSharedProcess("k", Config{Name: "m", QuietTime: time.Hour}, &p.work)
		p.byKey["k"] = []*sharedProcess{process}
		process.out = &stdio{writer: newWriter(&slowPipe{}, time.Hour)}
		process.out.writer.close()
		process.idle = time.Hour
		u := &attachedHost{number: 1}
		process.hosts[1], process.pending[1] = u, sharedRequest{host: u}
		process.leave(u) // an unanswered request is left, so checkAlive runs
		p.Close()
		stacks := make([]byte, 1<<20)
		require.NotContains(t, string(stacks[:runtime.Stack(stacks, true)]), "checkAlive")
	}
}
