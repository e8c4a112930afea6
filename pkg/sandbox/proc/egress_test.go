//go:build linux

package proc_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// world is a test internet with the two hosts allowed.test and other.test,
// which are the same server.
type world struct {
	server *httptest.Server
	mu     sync.Mutex
	dialed []string
	asked  int
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{}
	w.server = httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, q *http.Request) {
		w.mu.Lock()
		w.asked++
		w.mu.Unlock()
		if n, err := strconv.Atoi(q.URL.Query().Get("size")); err == nil {
			to.Header().Set("Content-Length", strconv.Itoa(n))
			to.Write(make([]byte, n))
			return
		}
		if q.URL.Path == "/hang" {
			to.WriteHeader(http.StatusOK)
			to.(http.Flusher).Flush()
			<-q.Context().Done()
			return
		}
		body, _ := io.ReadAll(q.Body)
		fmt.Fprintf(to, "%s says %s to %s\n", q.Host, q.Method, body)
	}))
	t.Cleanup(w.server.Close)
	return w
}

func (w *world) config() egress.Config {
	return egress.Config{
		Resolve: func(_ context.Context, name string) ([]netip.Addr, error) {
			addr, ok := map[string]string{"allowed.test": "93.184.216.34", "other.test": "93.184.216.35", "inside.test": "10.0.0.1"}[name]
			if !ok {
				return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
			}
			return []netip.Addr{netip.MustParseAddr(addr)}, nil
		},
		Dial: func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			w.mu.Lock()
			w.dialed = append(w.dialed, to.String())
			w.mu.Unlock()
			return new(net.Dialer).DialContext(ctx, "tcp", w.server.Listener.Addr().String())
		},
	}
}

// egressRunner returns a runner at L2 whose commands may only reach the hosts
// in list.
func egressRunner(t testing.TB, w *world, list string, environ ...string) *proc.Runner {
	t.Helper()
	allow, err := egress.ParseAllow(list)
	require.NoError(t, err)
	r := newRunner(t, proc.Config{
		Level: proc.L2, Egress: allow, Environ: append(os.Environ(), environ...), Grace: 50 * time.Millisecond, Linger: 10 * time.Millisecond,
	})
	if _, err := r.SelfTest(context.Background()); err != nil {
		t.Skip("L2 is not available: " + err.Error())
	}
	proc.SetEgressConfig(r, w.config())
	return r
}

// ask defines a shell function that sends its arguments as lines to the proxy
// and prints the answer.
const ask = `ask() { exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} && printf '%s\r\n' "$@" '' >&3 && timeout 20 cat <&3; exec 3>&-; }
`

func request(url, host string) string {
	return fmt.Sprintf("ask 'GET %s HTTP/1.1' 'Host: %s'", url, host)
}

func TestEgressReachesListedHosts(t *testing.T) {
	w := newWorld(t)
	r := egressRunner(t, w, "allowed.test")
	dir := place(t)
	result, out := run(t, r, proc.Command{Dir: dir, Rules: rules{dir}, Script: ask + request("http://allowed.test/", "allowed.test")})
	require.Contains(t, out, "allowed.test says GET")
	require.Empty(t, result.RefusedHosts)
	require.Equal(t, []string{"93.184.216.34:80"}, w.dialed)

	result, out = run(t, r, proc.Command{Dir: dir, Rules: rules{dir}, Script: ask +
		request("http://other.test/", "other.test") + "; ask 'CONNECT other.test:22 HTTP/1.1';" + request("http://other.test/", "other.test")})
	require.Contains(t, out, "HTTP/1.1 403 Not allowed by --net")
	require.Contains(t, out, "--net allow=other.test ")
	require.Equal(t, []egress.Refusal{
		{Host: "other.test:80", Why: "is not on the list of allowed hosts", Opens: "other.test"},
		{Host: "other.test:22", Why: "is not on the list of allowed hosts", Opens: "other.test:22"},
	}, result.RefusedHosts)
	require.Len(t, w.dialed, 1)
}

func TestEgressByClients(t *testing.T) {
	w := newWorld(t)
	r := egressRunner(t, w, "allowed.test")
	dir := place(t)
	for program, script := range map[string]string{
		"curl":    `curl -sS --data-binary hello http://allowed.test/x; curl -sS -o /dev/null -w '%{http_code}\n' http://other.test/; curl -sS https://other.test/ 2>&1`,
		"wget":    `wget -qO- --post-data=hello http://allowed.test/x; wget -O- http://other.test/ 2>&1`,
		"python3": "python3 -c 'import urllib.request as u\nprint(u.urlopen(\"http://allowed.test/x\", b\"hello\").read().decode())\ntry: u.urlopen(\"http://other.test/\")\nexcept Exception as e: print(e)'",
		"git":     `echo POST to hello; git ls-remote http://allowed.test/x 2>&1 | grep -q 'allowed.test' && echo allowed.test says POST to hello; git ls-remote http://other.test/x 2>&1`,
	} {
		t.Run(program, func(t *testing.T) {
			if missing(attack{needs: program}) != "" {
				t.Skip("no " + program)
			}
			result, out := run(t, r, proc.Command{Dir: dir, Rules: rules{dir}, Script: script})
			require.Contains(t, out, "allowed.test says POST to hello")
			require.Contains(t, out, "403")
			require.NotContains(t, out, "other.test says")
			require.NotEmpty(t, result.RefusedHosts)
			require.Equal(t, "other.test", result.RefusedHosts[0].Opens)
		})
	}
	for _, to := range w.dialed {
		require.Equal(t, "93.184.216.34:80", to)
	}
}

// TestEgressLeadsNowhereElse: with a list of hosts, a command reaches only
// these hosts.
func TestEgressLeadsNowhereElse(t *testing.T) {
	s := newScene(t)
	w := newWorld(t)
	r := egressRunner(t, w, "allowed.test,inside.test,93.184.216.34", "HOME="+filepath.Join(s.dir, "home"))
	for name, c := range map[string]struct{ script, refused string }{
		"loopback":          {`ask "CONNECT 127.0.0.1:$PORT HTTP/1.1"`, "127.0.0.1:"},
		"localhost":         {`ask "CONNECT localhost:$PORT HTTP/1.1"`, "localhost:"},
		"loopback in IPv6":  {`ask "CONNECT [::1]:$PORT6 HTTP/1.1"`, "[::1]:"},
		"mapped":            {`ask "CONNECT [::ffff:127.0.0.1]:$PORT HTTP/1.1"`, "[::ffff:127.0.0.1]:"},
		"private by name":   {`ask "CONNECT inside.test:443 HTTP/1.1"`, "inside.test:443"},
		"metadata":          {request("http://169.254.169.254/", "169.254.169.254"), "169.254.169.254:80"},
		"another port":      {`ask "CONNECT allowed.test:22 HTTP/1.1"`, "allowed.test:22"},
		"not TLS":           {`exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'CONNECT allowed.test:443 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n' >&3; timeout 20 cat <&3`, "allowed.test:443"},
		"directly":          {`echo x > /dev/tcp/127.0.0.1/$PORT`, ""},
		"directly outside":  {`echo x > /dev/tcp/93.184.216.34/80`, ""},
		"the abstract":      {`python3 -c 'import os,socket; socket.socket(socket.AF_UNIX).connect("\0"+os.environ["ABSTRACT"])'`, ""},
		"no second proxy":   {`exec 3<>/dev/udp/127.0.0.1/${HTTP_PROXY##*:}; echo x >&3; echo x >&3`, ""},
		"environment calls": {`env | grep -i _proxy=http: | grep -v 127.0.0.1`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(c.script, "python3 ") && missing(attack{needs: "python3"}) != "" {
				t.Skip("no python3")
			}
			env := append([]string{"HTTPS_PROXY=http://evil.test", "NO_PROXY=*"}, s.env...)
			result, out := run(t, r, proc.Command{Dir: filepath.Join(s.dir, "root"), Env: env, Rules: s.files, Script: ask + c.script})
			require.NotContains(t, out, "says")
			require.NotContains(t, out, "evil")
			if c.refused == "" {
				require.NotZero(t, result.ExitCode, out)
				require.Empty(t, result.RefusedHosts)
			} else {
				require.Len(t, result.RefusedHosts, 1, out)
				require.True(t, strings.HasPrefix(result.RefusedHosts[0].Host, c.refused), "%+v", result.RefusedHosts)
			}
			require.Empty(t, s.reach)
		})
	}
	require.Zero(t, w.asked)
}

// TestEgressEndsWithTheCommand: the end of a command closes its open
// connections through the proxy.
func TestEgressEndsWithTheCommand(t *testing.T) {
	w := newWorld(t)
	first := egressRunner(t, w, "allowed.test")
	dir := place(t)
	run(t, first, proc.Command{Dir: dir, Rules: rules{dir}, Script: "true"}) // opens the descriptors of the Go runtime's poller
	require.NoError(t, first.Close())
	before := descriptors(t)
	r := egressRunner(t, w, "allowed.test")
	hang := "(exec 3<>/dev/tcp/" + strings.Replace(proc.EgressAddr, ":", "/", 1) +
		`; printf 'GET http://allowed.test/hang HTTP/1.1\r\nHost: allowed.test\r\n\r\n' >&3; head -1 <&3; echo asked; sleep 100) & `
	p, err := r.Start(context.Background(), proc.Command{Dir: dir, Rules: rules{dir}, Script: hang + "sleep 100"})
	require.NoError(t, err)
	waitFor(t, p, "asked")
	p.Stop()
	require.Equal(t, proc.Killed, p.Wait().Ending)
	p.Output().Close()

	var wait sync.WaitGroup
	slots := make(chan struct{}, 12)
	for i := range 200 {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			script := "exec 3<>/dev/tcp/" + strings.Replace(proc.EgressAddr, ":", "/", 1) + `; echo yes`
			if i%50 == 0 {
				script = ask + request("http://allowed.test/", "allowed.test") + "; echo yes"
			}
			_, out, err := r.Run(context.Background(), proc.Command{Dir: dir, Rules: rules{dir}, Script: script})
			if err != nil || !strings.HasSuffix(out.Excerpt(0).Text(), "yes\n") {
				t.Errorf("command %d: %v", i, err)
			}
			if err == nil {
				out.Close()
			}
		})
	}
	wait.Wait()
	require.NoError(t, r.Close())
	w.server.CloseClientConnections()
	require.Eventually(t, func() bool { return descriptors(t) <= before }, time.Minute, 10*time.Millisecond)
}

func descriptors(t testing.TB) int {
	t.Helper()
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(names)
}

func TestEgressNeedsL2(t *testing.T) {
	allow, err := egress.ParseAllow("allowed.test")
	require.NoError(t, err)
	for _, c := range []proc.Config{{Level: proc.L1, Egress: allow}, {Level: proc.Off, Egress: allow}, {Network: true, Egress: allow}} {
		_, err := proc.New(c)
		require.ErrorIs(t, err, toolerr.New(toolerr.InvalidParams, ""))
	}
	if !contains(levels(t), proc.L1) {
		t.Skip("L1 is not available")
	}
	r := newRunner(t, proc.Config{Egress: allow})
	proc.FailChecks(r, map[proc.Level]string{proc.L2: ""})
	dir := t.TempDir()
	_, err = r.Start(context.Background(), proc.Command{Dir: dir, Rules: rules{dir}, Script: "true"})
	require.ErrorIs(t, err, toolerr.New(toolerr.SandboxUnavailable, ""))
	require.ErrorContains(t, err, "need level L2")
}
