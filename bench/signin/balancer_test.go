//go:build oracle

package signin

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"
)

// startNATS starts a cluster of one machine and returns its address.
func startNATS(t *testing.T) string {
	t.Helper()
	nats, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: 1 << 40, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	require.NoError(t, err)
	nats.Start()
	t.Cleanup(func() {
		nats.Shutdown()
		nats.WaitForShutdown()
	})
	require.True(t, nats.ReadyForConnections(time.Minute))
	return nats.ClientURL()
}

// serveTwice replaces the host of a team by two hosts with one store, as on two machines, behind a load balancer at
// the same address. The sessions of clients stay at the first host. The requests of browsers go to the hosts in turn,
// beginning with the second.
func (w *team) serveTwice() {
	t := w.t
	w.stop()
	config := filepath.Join(w.dir, "front.yaml")
	text, err := os.ReadFile(config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(config, fmt.Appendf(text, "\nstore: %s\ntoken_store: cluster\n", startNATS(t)), 0o600))
	var proxies [2]http.Handler
	for n := range proxies {
		free, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		address := free.Addr().String()
		require.NoError(t, free.Close())
		serve := exec.Command(w.host, "serve", "--listen", address, "--config", config, "--state", filepath.Join(w.dir, fmt.Sprint("host", n)))
		serve.Stderr = io.MultiWriter(os.Stderr, &w.front.said)
		require.NoError(t, serve.Start())
		t.Cleanup(func() {
			serve.Process.Signal(os.Interrupt) //nolint:errcheck // it may have ended
			serve.Wait()                       //nolint:errcheck // interrupted
		})
		require.Eventually(t, func() bool {
			res, err := http.Get("http://" + address + "/healthz")
			return err == nil && res.Body.Close() == nil && res.StatusCode == 200
		}, time.Minute, 20*time.Millisecond)
		to := &url.URL{Scheme: "http", Host: address}
		proxies[n] = &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			r.Out.Host = r.In.Host
		}}
	}
	var visits atomic.Int64
	listener, err := net.Listen("tcp", strings.TrimPrefix(w.url, "http://"))
	require.NoError(t, err)
	balancer := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		if strings.HasPrefix(in.URL.Path, "/sign-in/") {
			proxies[visits.Add(1)%2].ServeHTTP(out, in)
			return
		}
		proxies[0].ServeHTTP(out, in)
	})}
	go balancer.Serve(listener)            //nolint:errcheck // closed at the end
	t.Cleanup(func() { balancer.Close() }) //nolint:errcheck // the test has ended
}

// The hosts of a cluster behind a load balancer complete the sign-ins of users together, and a call that waits at
// one of them goes on when the last step was at the other one.
func TestLinkAtTwoHosts(t *testing.T) {
	w := newTeam(t, "jwt", true, "credentials: caller")
	w.serveTwice()
	v := visitors["SDK 1"]
	v.Links, v.Calls = true, []string{"notes__toolroom_sign_in", "notes__echo"}
	// alice's three requests go to the hosts 1, 0 and 1, and bob's to 0, 1 and 0.
	for _, user := range []string{"alice", "bob"} {
		text := "from " + user
		v.Token, v.Text = w.token(user), text
		got := w.visit(user, v)
		require.NotEmpty(t, got.Links)
		got.requireText(t, len(v.Calls)-1, text)
		v.Calls = []string{"notes__echo"}
	}
	require.Equal(t, []string{"alice: from alice", "bob: from bob"}, w.calls())
}
