package core

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/store"
	"github.com/toolroom-mcp/toolroom/host/internal/store/backend"
	"github.com/toolroom-mcp/toolroom/host/internal/store/memory"
	"github.com/toolroom-mcp/toolroom/host/internal/upstream"
	"github.com/toolroom-mcp/toolroom/internal/testkit/faultserver"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// within is a host over fixtures in this process.
func within(t *testing.T, cfg config.Config, servers ...string) (*App, config.Config) {
	t.Helper()
	for _, name := range servers {
		cfg.Servers = append(cfg.Servers, config.Server{Config: upstream.Config{Name: name, Era: upstream.Legacy, Command: []string{"/" + name}, Serve: faultserver.Serve}})
	}
	for i := range cfg.Servers {
		cfg.Servers[i].Command = nil // a place in this process has none
	}
	a, err := Open(cfg)
	require.NoError(t, err)
	t.Cleanup(a.Close)
	return a, cfg
}

func ask(ctx context.Context, a *App, name, arguments string) (string, error) {
	tool, ok := a.Catalog.Lookup(ctx, name)
	if !ok {
		return "", toolerr.New(toolerr.ToolNotFound, "%s", name)
	}
	res, err := a.Handler(ctx, &call.Request{Tool: tool, Params: []byte(`{"name":"` + name + `","arguments":` + arguments + `}`), Caller: call.Caller{EntryPoint: "cli", ID: "me"}})
	if err != nil {
		return "", err
	}
	return string(res.Raw), nil
}

// What a stage has counted outlives a change of another, and of a stage that
// is not there any more nothing is lost.
func TestAChangeOfOneStageLeavesTheOthersAlone(t *testing.T) {
	state := t.TempDir()
	a, cfg := within(t, config.Config{State: state, Stages: config.Stages{Policy: policy.Config{MaxTotalCalls: 3}}}, "s")
	hello := func() error { _, err := ask(t.Context(), a, "s__echo", `{}`); return err }
	require.NoError(t, hello())
	require.NoError(t, hello())
	before := a.snapshot.Load()

	next := cfg
	next.Stages.Timeout.Default = 7 * time.Second
	require.NoError(t, a.apply(t.Context(), next))
	require.NotSame(t, before, a.snapshot.Load())
	require.Same(t, before.pipeline.limiter, a.currentPipeline().limiter)
	require.NoError(t, hello())
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(hello()))
	require.EqualValues(t, 4, a.Stats()[0].Calls)

	next.Stages.Policy.MaxTotalCalls = 0
	next.Stages.Audit.Off = true
	require.NoError(t, a.apply(t.Context(), next))
	require.NoError(t, hello())
	require.Nil(t, a.currentPipeline().audit)
	require.EqualValues(t, 5, a.Stats()[0].Calls)
	a.Close()
	events := 0
	_, err := audit.Read(AuditDir(state), time.Time{}, func(audit.Event) { events++ })
	require.NoError(t, err)
	require.Equal(t, 8, events, "four calls, the last one not after the log was switched off")

	next.Stages.Limit.Queue = -1
	require.ErrorContains(t, a.apply(t.Context(), next), "limit: queue must not be negative, got -1")
}

// A server that is taken out ends when its calls have, and not before.
func TestAServerThatIsTakenOutFinishesItsCalls(t *testing.T) {
	a, cfg := within(t, config.Config{}, "s", "other")
	_, err := ask(t.Context(), a, "s__echo", `{}`)
	require.NoError(t, err)
	old := a.Servers()[0]
	tool, _ := a.Catalog.Lookup(t.Context(), "s__sleep")
	slept := make(chan error, 1)
	go func() {
		_, err := a.Handler(t.Context(), &call.Request{Tool: tool, Params: []byte(`{"name":"s__sleep","arguments":{"n":700}}`)})
		slept <- err
	}()
	inUse := a.snapshot.Load().byName["s"].calls
	require.Eventually(t, func() bool {
		if inUse.TryLock() {
			inUse.Unlock()
			return false
		}
		return true
	}, time.Minute, time.Millisecond)
	next := cfg
	next.Servers = cfg.Servers[1:]
	require.NoError(t, a.apply(t.Context(), next))
	_, err = a.Handler(t.Context(), &call.Request{Tool: tool, Params: []byte(`{"name":"s__echo"}`)})
	require.ErrorContains(t, err, "server s is no longer configured")
	require.NoError(t, <-slept)
	require.Eventually(t, func() bool { return old.Status().State == upstream.Closed }, time.Minute, time.Millisecond)
	require.NoError(t, a.apply(t.Context(), cfg))
	got, err := ask(t.Context(), a, "s__echo", `{"b":2}`)
	require.NoError(t, err)
	require.Contains(t, got, `{\"b\":2}`)
}

func TestOneOfSeveralHostsTrimsTheStore(t *testing.T) {
	now := time.Now().Add(-40 * 24 * time.Hour)
	shared := memory.New(memory.Config{Now: func() time.Time { return now }})
	host := func() *App {
		a, _ := within(t, config.Config{})
		a.store = shared
		return a
	}
	one, two := host(), host()
	left := func() int {
		records, err := shared.Log.Read(t.Context(), "x", 0, 10)
		require.NoError(t, err)
		return len(records)
	}
	add := func() {
		_, err := shared.Log.Append(t.Context(), "x", []byte("a"))
		require.NoError(t, err)
		now = now.Add(31 * 24 * time.Hour)
	}
	add()
	one.trim()
	require.Equal(t, 1, left(), "who has not used the store leaves it alone")
	one.storeUsed.Store(true)
	two.storeUsed.Store(true)
	now = time.Now()
	one.trim()
	require.Equal(t, 0, left())
	now = time.Now().Add(-40 * 24 * time.Hour)
	add()
	now = time.Now()
	two.trim()
	require.Equal(t, 1, left(), "it was just done")
	now = now.Add(2 * trimInterval)
	require.NoError(t, shared.Keys.Delete(t.Context(), trimKey, store.Any))
	two.trim()
	require.Equal(t, 0, left())
}

// Definitions are pinned wherever the configuration says.
func TestPinsAreKeptWhereTheConfigurationSays(t *testing.T) {
	for _, where := range append(servedStores(t), backend.Config{Dir: t.TempDir()}) {
		t.Run(where.String(), func(t *testing.T) {
			cfg := config.Config{Store: where, Pins: catalog.PinsEnforce}
			a, _ := within(t, cfg, "s")
			n := len(a.Catalog.Snapshot(t.Context()).Tools())
			a.Catalog.WaitForPinChecks(t.Context())
			require.Empty(t, a.Catalog.Errors())
			require.Equal(t, 24, n)
			a.Close()

			kept, err := backend.Open(where)
			require.NoError(t, err)
			defer kept.Close()
			require.NoError(t, catalog.NewPinStore(kept.Keys).Repin(t.Context(), "s", "echo", json.RawMessage(`{}`)))
			a, _ = within(t, cfg, "s")
			var told string
			a.OnNotice(func(text string) { told = text })
			require.Len(t, a.Catalog.Snapshot(t.Context()).Tools(), 23)
			a.Catalog.WaitForPinChecks(t.Context())
			require.Contains(t, told, "withheld until it is approved; mcp-host tools approve s__echo shows the difference")

			// What another process approves is served within moments.
			a.recheckEvery = 20 * time.Millisecond
			a.StartBackground()
			changed := a.Catalog.Changed()
			require.Len(t, changed, 1)
			require.NoError(t, catalog.NewPinStore(kept.Keys).Repin(t.Context(), "s", "echo", changed[0].Is))
			require.Eventually(t, func() bool { return len(a.Catalog.Snapshot(t.Context()).Tools()) == 24 }, 20*time.Second, 5*time.Millisecond)
		})
	}
}

// Hosts that see the same tools for the first time at once pin them once.
func TestHostsShareAStore(t *testing.T) {
	cfg := config.Config{Store: backend.Config{Dir: t.TempDir()}, Pins: catalog.PinsEnforce}
	var hosts sync.WaitGroup
	for range 4 {
		a, _ := within(t, cfg, "s", "r")
		hosts.Go(func() {
			n := len(a.Catalog.Snapshot(t.Context()).Tools())
			a.Catalog.WaitForPinChecks(t.Context())
			if errs := a.Catalog.Errors(); n != 48 || len(errs) > 0 {
				t.Errorf("%d tools, %v", n, errs)
			}
		})
	}
	hosts.Wait()
}

// A host that is to remember, but cannot, serves all the same, unless it is to
// withhold what it does not know.
func TestAStoreThatCannotBeReached(t *testing.T) {
	for mode, want := range map[catalog.PinMode]int{"": 24, catalog.PinsOff: 24, catalog.PinsEnforce: 0} {
		a, _ := within(t, config.Config{Store: backend.Config{URL: "nats://127.0.0.1:1"}, Pins: mode}, "s")
		require.Len(t, a.Catalog.Snapshot(t.Context()).Tools(), want, mode)
		a.Catalog.WaitForPinChecks(t.Context())
		require.Equal(t, mode == catalog.PinsOff, len(a.Catalog.Errors()) == 0, fmt.Sprint(a.Catalog.Errors()))
		require.Error(t, a.TryStore(t.Context()))
	}
}

// What another host has registered and cannot be served now is served once it can be.
func TestWhatIsRegisteredIsTriedAgain(t *testing.T) {
	state := t.TempDir()
	cfg := config.Config{State: state, Store: backend.Config{Dir: state}, Stages: config.Stages{Audit: audit.Config{Off: true}}}
	one, _ := within(t, cfg)
	other, _ := within(t, cfg)
	_, err := other.Declare(t.Context(), "m.yaml", []byte("apiVersion: promptkit.altairalabs.ai/v1\nkind: Tool\nmetadata: {name: new}\nspec: {mock_result: 1}\n"))
	require.NoError(t, err)
	var said []string
	one.OnNotice(func(text string) { said = append(said, text) })
	one.snapshot.Load().cfg.Profiles = []catalog.Profile{{Name: "not a name"}}
	require.False(t, one.refreshStored(t.Context(), nil))
	require.Len(t, said, 1)
	one.snapshot.Load().cfg.Profiles = nil
	one.storedTools.pausedUntil.Store(0)
	require.True(t, one.refreshStored(t.Context(), nil))
	require.True(t, one.snapshot.Load().stored["new"])
}
