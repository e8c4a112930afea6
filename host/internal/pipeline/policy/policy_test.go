package policy_test

import (
	"context"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// lenient is a policy in which everything is looked at and nothing refused.
func lenient() policy.Config {
	return policy.Config{
		Allow: []string{"srv__*"}, Block: []string{"other__*"},
		Rules:             []policy.Rule{{Tool: "srv__*", Args: map[string]string{"text": "forbidden*"}, Do: policy.Deny}},
		MaxCallsPerMinute: map[string]int{"*": 100_000}, MaxTotalCalls: 1 << 30, MaxIdenticalCalls: 1 << 30,
	}
}

func TestStage(t *testing.T) {
	stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return policy.New(lenient(), nil).Stage, func() {} })
	t.Run("of nothing", func(t *testing.T) {
		stagetest.Run(t, func(*testing.T) (call.Stage, func()) { return policy.New(policy.Config{}, nil).Stage, func() {} })
	})
}

func BenchmarkStage(b *testing.B) {
	cfg := lenient()
	cfg.MaxCallsPerMinute = nil
	stagetest.Bench(b, policy.New(cfg, nil).Stage)
}

// try makes a call and returns "" or the code of its refusal.
func try(t *testing.T, stage call.Stage, tool, arguments string, c call.Caller) (toolerr.Code, error) {
	t.Helper()
	made := false
	h := stage(func(context.Context, *call.Request) (*call.Result, error) {
		made = true
		return stagetest.Text("x"), nil
	})
	_, err := h(t.Context(), &call.Request{
		Tool: &call.Tool{Name: tool}, Caller: c, Params: []byte(`{"name":"x","arguments":` + arguments + `}`),
	})
	require.Equal(t, err == nil, made, "a call that is refused is not made")
	if err == nil {
		return "", nil
	}
	return toolerr.CodeOf(err), err
}

func TestListsAndRules(t *testing.T) {
	lists := policy.Config{Allow: []string{"git__*", "ls"}, Block: []string{"*__push", "git__force*"}}
	bash := policy.Config{Rules: []policy.Rule{
		{Tool: "bash", Args: map[string]string{"command": "git status*"}, Do: policy.Allow},
		{Tool: "bash", Args: map[string]string{"command": "*rm -rf*"}, Do: policy.Deny, Why: "it cannot be undone"},
		{Tool: "bash", Caller: "http/*", Do: policy.Ask},
		{Caller: "cli", Tool: "nuke", Do: policy.Deny},
	}}
	deep := policy.Config{Rules: []policy.Rule{
		{Args: map[string]string{"/options/a~1b/0": "x*y"}, Do: policy.Deny},
		{Args: map[string]string{"force": "true", "n": "1*"}, Do: policy.Deny},
		{Args: map[string]string{"paths": "safe/*"}, Do: policy.Allow},
		{Args: map[string]string{"paths": "*"}, Do: policy.Deny},
	}}
	stdio, http := call.Caller{EntryPoint: "stdio"}, call.Caller{EntryPoint: "http", ID: "ada"}
	for _, c := range []struct {
		cfg       policy.Config
		tool      string
		arguments string
		caller    call.Caller
		want      toolerr.Code
	}{
		{lists, "ls", `{}`, stdio, ""},
		{lists, "git__log", `{}`, stdio, ""},
		{lists, "git__push", `{}`, stdio, toolerr.PolicyDenied},
		{lists, "git__force_push", `{}`, stdio, toolerr.PolicyDenied},
		{lists, "lsx", `{}`, stdio, toolerr.PolicyDenied},
		{policy.Config{Block: []string{"a*b*c"}}, "aXbYc", `{}`, stdio, toolerr.PolicyDenied},
		{policy.Config{Block: []string{"a*b*c"}}, "acb", `{}`, stdio, ""},
		{policy.Config{Block: []string{"a*a"}}, "a", `{}`, stdio, ""},
		{policy.Config{Block: []string{"a.c", "[a]"}}, "abc", `{}`, stdio, ""},

		{bash, "bash", `{"command":"git status -s"}`, http, ""},
		{bash, "bash", `{"command":"cd x\nrm -rf /"}`, http, toolerr.PolicyDenied},
		{bash, "bash", `{"command":"r\u006d -rf /"}`, stdio, toolerr.PolicyDenied},
		{bash, "bash", `{"Command":"rm -rf /"}`, stdio, toolerr.PolicyDenied}, // a server may read it so
		{bash, "bash", `{"command":"git status","Command":"ls"}`, http, toolerr.PolicyDenied},
		{bash, "bash", `{"command":["git status","rm -rf /"]}`, stdio, toolerr.PolicyDenied},
		{bash, "bash", `{"command":"ls"}`, stdio, ""},
		{bash, "bash", `{"command":"ls"}`, http, toolerr.PolicyDenied},
		{bash, "bash", `{}`, stdio, ""},
		{bash, "nuke", `{}`, call.Caller{EntryPoint: "cli", ID: "me"}, toolerr.PolicyDenied},
		{bash, "nuke", `{}`, stdio, ""},
		{bash, "bash", `{"command":"ls","command":"rm -rf /"}`, stdio, toolerr.InvalidParams},

		{deep, "t", `{"options":{"a/b":["xzy"]}}`, stdio, toolerr.PolicyDenied},
		{deep, "t", `{"options":{"a/b":["z","xzy"]}}`, stdio, ""},
		{deep, "t", `{"options":"xzy"}`, stdio, ""},
		{deep, "t", `{"force":true,"n":12}`, stdio, toolerr.PolicyDenied},
		{deep, "t", `{"force":true,"n":2}`, stdio, ""},
		{deep, "t", `{"force":true}`, stdio, ""},
		{deep, "t", `{"paths":["safe/a",{"x":"safe/b"}]}`, stdio, ""},
		{deep, "t", `{"paths":["safe/a","b"]}`, stdio, toolerr.PolicyDenied},
		{deep, "t", `{"paths":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`, stdio, toolerr.InvalidParams},
		{deep, "t", `{"paths":{"a":1,"a":2}}`, stdio, toolerr.InvalidParams},
	} {
		require.NoError(t, c.cfg.Validate())
		got, err := try(t, policy.New(c.cfg, nil).Stage, c.tool, c.arguments, c.caller)
		require.Equal(t, c.want, got, "%s %s: %v", c.tool, c.arguments, err)
	}
	_, err := try(t, policy.New(bash, nil).Stage, "bash", `{"command":"rm -rf /"}`, stdio)
	require.EqualError(t, err, "bash: rule 2 of this host's policy (tool bash, command *rm -rf*) denies this call: it cannot be undone; continue without it")
	var refused *call.ValidationError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, call.PolicyViolation, refused.Type)
}

func TestAskGoesThroughApprovalOrIsRefused(t *testing.T) {
	cfg := policy.Config{Rules: []policy.Rule{{Tool: "bash", Do: policy.Ask}}}
	_, err := try(t, policy.New(cfg, nil).Stage, "bash", `{}`, call.Caller{})
	require.EqualError(t, err, "bash: rule 1 of this host's policy (tool bash) requires approval; this host cannot ask; continue without it, or change the rule to allow")
	require.Equal(t, toolerr.PolicyDenied, toolerr.CodeOf(err))

	asked := 0
	stage := policy.New(cfg, approval(func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			asked++
			return next(ctx, req)
		}
	})).Stage
	for _, tool := range []string{"bash", "ls"} {
		code, _ := try(t, stage, tool, `{}`, call.Caller{})
		require.Empty(t, code)
	}
	require.Equal(t, 1, asked)

	// Nobody is asked about a call that fails because its server cannot list its tools.
	offline := toolerr.New(toolerr.ServerOffline, "the server is offline")
	_, err = stage(func(_ context.Context, req *call.Request) (*call.Result, error) { return nil, req.Tool.Unlisted.Err })(t.Context(),
		&call.Request{Tool: &call.Tool{Name: "bash", Unlisted: &call.Unlisted{Err: offline}}, Params: json.RawMessage(`{}`)})
	require.ErrorIs(t, err, offline)
	require.Equal(t, 1, asked)
}

// approval is an approval in which the test decides.
type approval call.Stage

func (a approval) Stage(next call.Handler) call.Handler { return a(next) }

func TestCallsAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := policy.Config{MaxCallsPerMinute: map[string]int{"api__*": 5, "api__slow": 2, "free": 0}}
		stage := policy.New(cfg, nil).Stage
		call := func(tool string) error {
			_, err := try(t, stage, tool, `{}`, call.Caller{ID: strconv.Itoa(time.Now().Second())})
			return err
		}
		for range 5 {
			require.NoError(t, call("api__x"))
			require.NoError(t, call("free"))
			time.Sleep(time.Second)
		}
		err := call("api__x")
		require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(err))
		require.EqualError(t, err, "api__x: limit of 5 calls per minute reached; try again in 55s")
		var cause *toolerr.Error
		require.ErrorAs(t, err, &cause)
		require.Equal(t, int64(55_000), cause.Extra()["retryAfterMs"])
		require.NoError(t, call("api__y"), "each tool has its own")
		time.Sleep(55 * time.Second)
		require.NoError(t, call("api__x"))
		require.Error(t, call("api__x"))
		time.Sleep(time.Second)
		require.NoError(t, call("api__x"))
		require.NoError(t, call("api__slow"))
		require.NoError(t, call("api__slow"))
		require.Error(t, call("api__slow"), "the least of all that match")
		require.NoError(t, call("free"))
	})
}

// Clients choose the names of tools that are not listed.
func TestCallsAMinuteOfToolsThatAreNotListed(t *testing.T) {
	stage := policy.New(policy.Config{MaxCallsPerMinute: map[string]int{"*": 2}}, nil).Stage
	var unlisted call.Unlisted
	made := func(tool string, state *call.Unlisted) error {
		req := stagetest.Request("a", `{}`)
		called := *req.Tool
		called.Name, called.Unlisted = tool, state
		req.Tool = &called
		_, err := stage(func(context.Context, *call.Request) (*call.Result, error) { return stagetest.Text(""), nil })(t.Context(), req)
		return err
	}
	for range 2 {
		require.NoError(t, made("s__x", &unlisted))
		require.NoError(t, made("s__x", nil), "it has its own limit once it is listed")
	}
	require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(made("s__x", &unlisted)))
	for i := range 2000 {
		require.NoError(t, made("s__any"+strconv.Itoa(i), &unlisted))
	}
	require.Equal(t, toolerr.RateLimited, toolerr.CodeOf(made("s__x", nil)))
}

func TestTotalsOfACallerAndOfATurn(t *testing.T) {
	a, b := call.Caller{EntryPoint: "http", ID: "a"}, call.Caller{EntryPoint: "http", ID: "b"}
	turn := func(c call.Caller, n string) call.Caller {
		c.ModelTurn = n
		return c
	}
	agent := func(c call.Caller, name string) call.Caller {
		c.Agent, c.Depth = name, 1
		return c
	}
	for _, c := range []struct {
		name  string
		cfg   policy.Config
		calls []call.Caller
		args  []string
		want  string // a letter a call: . made, L limit reached
		text  string
	}{
		{"in all", policy.Config{MaxTotalCalls: 2}, []call.Caller{a, turn(a, "1"), a, b, b, b}, nil, "..L..L",
			"t: all allowed calls (2) have been made; finish with what you have"},
		{"a turn", policy.Config{MaxCallsPerTurn: 2}, []call.Caller{a, a, a, turn(a, "1"), turn(a, "1"), turn(a, "1"), turn(a, "2"), turn(b, "1")}, nil, ".....L..",
			"t: all calls of this turn (2) have been made; answer with what you have"},
		{"identical", policy.Config{MaxIdenticalCalls: 2}, []call.Caller{a, a, a, a, b, turn(a, "1")}, []string{`{"a":1}`, `{"a":1}`, `{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":1}`}, "..L...",
			"t: the same call was made the maximum number of times (2), and its result is known: change the arguments, or continue without it"},
		{"identical, of agents", policy.Config{MaxIdenticalCalls: 1}, []call.Caller{turn(a, "1"), agent(turn(a, "1"), "x"), agent(turn(a, "1"), "y"), agent(turn(a, "1"), "x")},
			[]string{`{}`, `{}`, `{}`, `{}`}, "...L",
			"t: the same call was made the maximum number of times (1), and its result is known: change the arguments, or continue without it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stage := policy.New(c.cfg, nil).Stage
			got := ""
			for i, caller := range c.calls {
				arguments := `{"i":` + strconv.Itoa(i) + `}`
				if c.args != nil {
					arguments = c.args[i]
				}
				code, err := try(t, stage, "t", arguments, caller)
				if err == nil {
					got += "."
					continue
				}
				require.Equal(t, toolerr.LimitReached, code)
				require.EqualError(t, err, c.text)
				got += "L"
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestCallersThatAreStillThereAreNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stage := policy.New(policy.Config{MaxTotalCalls: 10}, nil).Stage
		refused := 0
		for n := range 20_000 {
			time.Sleep(time.Millisecond)
			_, err := try(t, stage, "t", `{}`, call.Caller{ID: strconv.Itoa(n)})
			require.NoError(t, err)
			if n%1000 == 0 {
				if _, err := try(t, stage, "t", `{}`, call.Caller{ID: "there"}); err != nil {
					refused++
				}
			}
		}
		require.Equal(t, 10, refused)
	})
}

func TestConfig(t *testing.T) {
	require.NoError(t, policy.Config{}.Validate())
	require.NoError(t, lenient().Validate())
	for want, cfg := range map[string]policy.Config{
		`policy: rules[1]: do is "maybe", not one of allow, ask, deny`:          {Rules: []policy.Rule{{Do: policy.Ask}, {Do: "maybe"}}},
		`policy: rules[0]: args has an argument without a name`:                 {Rules: []policy.Rule{{Do: policy.Ask, Args: map[string]string{"": "x"}}}},
		`policy: max_calls_per_minute of x is -1, not between 0 and 100000`:     {MaxCallsPerMinute: map[string]int{"x": -1}},
		`policy: max_calls_per_minute of x is 100001, not between 0 and 100000`: {MaxCallsPerMinute: map[string]int{"x": 100_001}},
		`policy: max_total_calls must not be negative, got -1`:                  {MaxTotalCalls: -1},
		`policy: max_calls_per_turn must not be negative, got -1`:               {MaxCallsPerTurn: -1},
		`policy: max_cost needs prices, the costs of calls`:                     {MaxCost: 1},
		`policy: max_cost must be 0 or more, got NaN`:                           {MaxCost: math.NaN()},
		`policy: prices: the price of x must be 0 or more, got -1`:              {Prices: map[string]float64{"x": -1}},
	} {
		require.EqualError(t, cfg.Validate(), want)
	}
}

// A rule on an argument also meets the spellings of it that a tool takes and
// does not list, and numbers by their value.
func TestSpellingsOfArguments(t *testing.T) {
	p := policy.New(policy.Config{Rules: []policy.Rule{
		{Tool: "view", Args: map[string]string{"file_path": "*secret*"}, Do: policy.Deny},
		{Tool: "push", Args: map[string]string{"n": "1000"}, Do: policy.Deny},
		{Tool: "ls", Args: map[string]string{"path": "src*"}, Do: policy.Allow},
		{Tool: "ls", Do: policy.Deny},
	}}, nil)
	for _, test := range []struct {
		tool, schema, arguments string
		denied                  bool
	}{
		{"view", `{"properties":{"file_path":{}}}`, `{"path":"a/secret.txt"}`, true},
		{"view", `{"properties":{"file_path":{}}}`, `{"path":"a/b.txt"}`, false},
		{"view", `{"properties":{"file_path":{},"note":{}}}`, `{"file_path":"b","note":"secret"}`, false},
		{"view", `{"type":"object"}`, `{"other":"secret"}`, false},
		{"push", `{"properties":{"n":{}}}`, `{"n":1e3}`, true},
		{"push", `{"properties":{"n":{}}}`, `{"n":1000.0}`, true},
		{"push", `{"properties":{"n":{}}}`, `{"n":1001}`, false},
		{"ls", `{"properties":{"path":{}}}`, `{"path":"src/a"}`, false},
		{"ls", `{"properties":{"path":{}}}`, `{"path":"src/a","dir":"/etc"}`, true},
	} {
		h := p.Stage(func(context.Context, *call.Request) (*call.Result, error) { return stagetest.Text("x"), nil })
		_, err := h(t.Context(), &call.Request{
			Tool:   &call.Tool{Name: test.tool, Traits: call.Traits{Input: []byte(test.schema)}},
			Params: []byte(`{"name":"x","arguments":` + test.arguments + `}`),
		})
		require.Equal(t, test.denied, toolerr.CodeOf(err) == toolerr.PolicyDenied, "%s %s: %v", test.tool, test.arguments, err)

		// Another name of a tool says nothing itself of its arguments.
		_, err = h(t.Context(), &call.Request{
			Tool:   &call.Tool{Name: test.tool, Definition: []byte(`{"inputSchema":` + test.schema + `}`), Traits: call.Traits{Input: []byte(`{"type":"object"}`)}},
			Params: []byte(`{"name":"x","arguments":` + test.arguments + `}`),
		})
		require.Equal(t, test.denied, toolerr.CodeOf(err) == toolerr.PolicyDenied, "another name of %s %s: %v", test.tool, test.arguments, err)
	}
}
