package cache_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/cache"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestStage(t *testing.T) {
	t.Run("off", func(t *testing.T) {
		stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return cache.New(cache.Config{}).Stage, func() {} })
	})
	t.Run("for other tools", func(t *testing.T) {
		stagetest.Run(t, func(*testing.T) (call.Stage, func()) {
			return cache.New(cache.Config{Tools: []string{"other__*", "srv__ech"}}).Stage, func() {}
		})
	})
	t.Run("small", func(t *testing.T) { // no two calls of the suite that expect different results are the same
		stagetest.Run(t, func(*testing.T) (call.Stage, func()) {
			return cache.New(cache.Config{Tools: []string{"srv__echo"}, TTL: time.Nanosecond, MaxBytes: 1 << 20}).Stage, func() {}
		})
	})
}

func BenchmarkHit(b *testing.B) {
	stagetest.Bench(b, cache.New(cache.Config{Tools: []string{"*"}}).Stage)
}

// counted is a tool whose results number its calls.
type counted struct {
	h    call.Handler
	made int
	err  error
	raw  string
}

func newCounted(c *cache.Cache) *counted {
	n := &counted{}
	n.h = c.Stage(func(context.Context, *call.Request) (*call.Result, error) {
		n.made++
		if n.err != nil {
			return nil, n.err
		}
		if n.raw != "" {
			return &call.Result{Raw: json.RawMessage(n.raw)}, nil
		}
		return stagetest.Text(strconv.Itoa(n.made)), nil
	})
	return n
}

func (n *counted) call(t *testing.T, change func(*call.Request), params string) string {
	t.Helper()
	req := stagetest.Request("a", `{}`)
	req.Params = json.RawMessage(params)
	if change != nil {
		change(req)
	}
	res, err := n.h(t.Context(), req)
	if err != nil {
		return err.Error()
	}
	return string(res.Raw)
}

func on() cache.Config { return cache.Config{Tools: []string{"srv__*"}} }

func TestTheSameCallIsAnsweredFromTheCache(t *testing.T) {
	n := newCounted(cache.New(on()))
	first := n.call(t, nil, `{"name":"x","arguments":{"a":{"x":1,"y":[1.0,"é"]},"b":null}}`)
	for _, params := range []string{
		`{"name":"x","arguments":{"a":{"x":1,"y":[1.0,"é"]},"b":null}}`,
		`{"arguments":{"b":null, "a":{"y":[ 1.0 ,"\u00e9"],"x":1}},"name":"x","_meta":{"progressToken":9}}`,
	} {
		require.Equal(t, first, n.call(t, func(r *call.Request) { r.Caller.ID = "somebody else" }, params))
	}
	require.Equal(t, 1, n.made)
}

// A result is cached for a user and a profile.
func TestUsersAndProfilesHaveTheirOwnResults(t *testing.T) {
	n := newCounted(cache.New(on()))
	callers := []call.Caller{
		{}, {User: "ann"}, {User: "ann", Subject: "i\n1"}, {User: "ann", Subject: "i\n2"}, {Profile: "ann"}, {User: "ann", Profile: "few"}, {User: "an", Profile: "nfew"},
	}
	for range 2 {
		for i, caller := range callers {
			require.Equal(t, string(stagetest.Text(strconv.Itoa(i+1)).Raw), n.call(t, func(r *call.Request) { r.Caller = caller }, `{"arguments":{}}`))
		}
	}
	require.Equal(t, len(callers), n.made)
}

// What one caller's client has said is in no answer to another.
func TestWhatIsOneCallersAloneIsNotKept(t *testing.T) {
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	}
	asks := true
	made := 0
	h := cache.New(on()).Stage(func(ctx context.Context, req *call.Request) (*call.Result, error) {
		made++
		if asks {
			if _, err := req.Ask(ctx, "elicitation/create", nil); err != nil {
				return nil, err
			}
		}
		return stagetest.Text(strconv.Itoa(made)), nil
	})
	for range 2 {
		req := stagetest.Request("a", `{}`)
		req.Ask = ask
		_, err := h(t.Context(), req)
		require.NoError(t, err)
	}
	require.Equal(t, 2, made)
	asks = false
	for range 2 {
		req := stagetest.Request("a", `{}`)
		req.Ask = ask
		_, err := h(t.Context(), req)
		require.NoError(t, err)
	}
	require.Equal(t, 3, made, "who could be asked, and was not, is answered from what is kept")

	cfg := on()
	cfg.IsPerCaller = func(server string) bool { return server == "srv" }
	n := newCounted(cache.New(cfg))
	n.call(t, nil, `{"arguments":{}}`)
	n.call(t, nil, `{"arguments":{}}`)
	require.Equal(t, 2, n.made)
	other := func(r *call.Request) { r.Tool.Server = "shared" }
	n.call(t, other, `{"arguments":{}}`)
	n.call(t, other, `{"arguments":{}}`)
	require.Equal(t, 3, n.made)
}

func TestWhatIsAnotherCall(t *testing.T) {
	version := "1"
	cfg := on()
	cfg.Version = func(string) string { return version }
	n := newCounted(cache.New(cfg))
	const params = `{"name":"x","arguments":{"a":1}}`
	n.call(t, nil, params)
	made := 1
	for name, change := range map[string]func(*call.Request){
		"arguments":                  func(r *call.Request) { r.Params = json.RawMessage(`{"arguments":{"a":2}}`) },
		"a number":                   func(r *call.Request) { r.Params = json.RawMessage(`{"arguments":{"a":1.0}}`) },
		"a text":                     func(r *call.Request) { r.Params = json.RawMessage(`{"arguments":{"a":"1"}}`) },
		"nothing":                    func(r *call.Request) { r.Params = nil },
		"the era":                    func(r *call.Request) { r.Caller.Modern = true },
		"the server":                 func(r *call.Request) { r.Tool.Server = "other" },
		"a definition":               func(r *call.Request) { r.Tool.Definition = json.RawMessage(`{"name":"srv__echo","odd":1}`) },
		"the version":                func(*call.Request) { version = "2" },
		"twice":                      func(r *call.Request) { r.Params = json.RawMessage(`{"arguments":{"b":{"a":1,"a":1}}}`) },
		"an answer":                  func(r *call.Request) { r.Params = json.RawMessage(`{"arguments":{"a":1},"inputResponses":{}}`) },
		"a tool that changes things": func(r *call.Request) { r.Tool.ReadOnly = false },
		"another tool":               func(r *call.Request) { r.Tool.Name = "else" },
		"a directive": func(r *call.Request) {
			r.Params = json.RawMessage(`{"arguments":{"a":1},"_meta":{"toolroom/cache":"bypass"}}`)
		},
		"a directive that is none": func(r *call.Request) {
			r.Params = json.RawMessage(`{"arguments":{"a":1},"_meta":{"toolroom/cache":7}}`)
		},
		"too deep": func(r *call.Request) {
			r.Params = json.RawMessage(`{"arguments":{"a":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}}`)
		},
	} {
		n.call(t, change, params)
		made++
		require.Equal(t, made, n.made, name)
		version = "1"
	}
	require.Contains(t, n.call(t, nil, params), `"1"`, "the first one is still there")

	refreshed := n.call(t, nil, `{"arguments":{"a":1},"_meta":{"toolroom/cache":"refresh"}}`)
	require.Contains(t, refreshed, strconv.Itoa(made+1))
	require.Equal(t, refreshed, n.call(t, nil, params))
}

func TestFailuresAreNotKept(t *testing.T) {
	n := newCounted(cache.New(on()))
	n.err = toolerr.New(toolerr.Timeout, "late")
	n.call(t, nil, `{}`)
	n.err = nil
	for i, raw := range []string{`{"isError":true}`, `{"resultType":"input_required"}`} {
		n.raw = raw
		require.Equal(t, raw, n.call(t, nil, `{}`))
		require.Equal(t, i+2, n.made)
	}
	n.raw = `{"content":[],"resultType":"complete"}`
	n.call(t, nil, `{}`)
	n.call(t, nil, `{}`)
	require.Equal(t, 4, n.made)
}

func TestResultsExpireAndAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := on()
		cfg.TTL, cfg.MaxBytes, cfg.MaxEntry = time.Minute, 10_000, 3000
		c := cache.New(cfg)
		n := newCounted(c)
		n.call(t, nil, `{}`)
		time.Sleep(59 * time.Second)
		n.call(t, nil, `{}`)
		require.Equal(t, 1, n.made)
		time.Sleep(time.Second)
		n.call(t, nil, `{}`)
		require.Equal(t, 2, n.made)

		n.raw = `{"x":"` + strings.Repeat("x", 1000) + `"}`
		of := func(i int) string { return `{"arguments":{"i":` + strconv.Itoa(i) + `}}` }
		for i := range 100 {
			n.call(t, nil, of(i))
			n.call(t, nil, of(0)) // used, so it stays
			_, bytes := c.Size()
			require.LessOrEqual(t, bytes, int64(10_000))
		}
		results, _ := c.Size()
		require.Equal(t, 7, results)
		require.Equal(t, 102, n.made)
		n.call(t, nil, of(99))
		require.Equal(t, 102, n.made)
		n.call(t, nil, of(50))
		require.Equal(t, 103, n.made)

		n.raw = `{"x":"` + strings.Repeat("x", 3000) + `"}`
		n.call(t, nil, of(1000))
		n.call(t, nil, of(1000))
		require.Equal(t, 105, n.made, "too large to be kept")
	})
}

func TestConfig(t *testing.T) {
	require.NoError(t, cache.Config{}.Validate())
	for want, cfg := range map[string]cache.Config{
		"cache: ttl must not be negative, got -1ns":                           {TTL: -1},
		"cache: max_bytes must not be negative, got -1":                       {MaxBytes: -1},
		"cache: max_entry must not be negative, got -1":                       {MaxEntry: -1},
		"cache: tools: *__read matches no tool: * is only allowed at the end": {Tools: []string{"a__*", "*__read"}},
	} {
		require.EqualError(t, cfg.Validate(), want)
	}
}
