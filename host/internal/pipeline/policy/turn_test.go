package policy_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/stagetest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestTheRoundsOfATurn(t *testing.T) {
	for most, want := range map[int]int{0: 50, 3: 3, -1: 100} {
		turn := policy.New(policy.Config{MaxRounds: most}, nil).Turn(call.Caller{})
		n := 0
		var err error
		for ; n < 100 && err == nil; n++ {
			err = turn.BeginRound()
		}
		if err != nil {
			n--
			require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
		}
		require.Equal(t, want, n)
	}
}

func TestWhatTheModelIsToldOfTools(t *testing.T) {
	for _, c := range []struct {
		own, asked  string
		first, then string // before and after a tool was called
		refused     bool
	}{
		{"", "", "auto", "auto", false},
		{"auto", "required", "required", "auto", false},
		{"auto", "none", "none", "none", false},
		{"auto", "ls", "ls", "auto", false},
		{"required", "", "required", "auto", false},
		{"required", "ls", "ls", "auto", false},
		{"none", "required", "none", "none", false},
		{"ls", "", "ls", "auto", false},
		{"ls", "required", "ls", "auto", false},
		{"ls", "ls", "ls", "auto", false},
		{"ls", "bash", "", "", true},
	} {
		p := policy.New(policy.Config{ToolChoice: c.own}, nil)
		turn := p.Turn(call.Caller{EntryPoint: "http", ID: "a"})
		got, err := turn.Choice(c.asked)
		require.Equal(t, c.refused, err != nil, "%+v", c)
		require.Equal(t, c.first, got, "%+v", c)
		code, _ := try(t, p.Stage, "ls", `{}`, turn.Caller())
		require.Equal(t, c.own == "none", code == toolerr.PolicyDenied)
		if c.own == "none" || c.refused {
			continue
		}
		got, err = turn.Choice(c.asked)
		require.NoError(t, err)
		require.Equal(t, c.then, got, "%+v", c)
		require.NoError(t, turn.End())
	}
	p := policy.New(policy.Config{ToolChoice: policy.ChoiceRequired}, nil)
	require.ErrorContains(t, p.Turn(call.Caller{}).End(), "requires a tool call")
}

func TestATurnHasLimitsOfItsOwn(t *testing.T) {
	p := policy.New(policy.Config{MaxCallsPerTurn: 5}, nil)
	for range 2 { // each turn
		turn := p.Turn(call.Caller{EntryPoint: "http", ID: "a"})
		for range 3 {
			code, _ := try(t, p.Stage, "ls", `{"a":1,"b":2}`, turn.Caller())
			require.Empty(t, code)
		}
		code, _ := try(t, p.Stage, "ls", `{ "b":2, "a":1 }`, turn.Caller())
		require.Equal(t, toolerr.LimitReached, code, "three identical calls, however they are written")
		for range 2 {
			code, _ = try(t, p.Stage, "view", `{}`, turn.Caller())
			require.Empty(t, code)
		}
		code, _ = try(t, p.Stage, "view", `{}`, turn.Caller())
		require.Equal(t, toolerr.LimitReached, code)
		require.NoError(t, turn.End())
	}
}

func TestCost(t *testing.T) {
	p := policy.New(policy.Config{MaxCost: 1, Prices: map[string]float64{"*": 0.1, "dear__*": 0.5, "dear__free": 0}}, nil)
	a, b := call.Caller{ID: "a"}, call.Caller{ID: "b"}
	for range 10 {
		code, err := try(t, p.Stage, "ls", `{}`, a)
		require.Empty(t, code, "%v", err)
	}
	_, err := try(t, p.Stage, "ls", `{}`, a)
	require.Equal(t, toolerr.LimitReached, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "max_cost")
	for _, c := range []struct {
		tool string
		want toolerr.Code
	}{
		{"dear__x", ""}, {"dear__free", ""}, {"ls", ""}, {"dear__x", toolerr.LimitReached}, {"ls", ""}, {"dear__free", ""},
	} {
		code, _ := try(t, p.Stage, c.tool, `{}`, b)
		require.Equal(t, c.want, code, c.tool)
	}
}

// The API is no way round a rule for HTTP.
func TestTheAPIIsOverHTTP(t *testing.T) {
	for pattern, want := range map[string][3]policy.Verdict{ // of api, http, cli
		"http": {policy.Deny, policy.Deny, policy.Allow}, "http*": {policy.Deny, policy.Deny, policy.Allow},
		"http/ann": {policy.Deny, policy.Deny, policy.Allow}, "api": {policy.Deny, policy.Allow, policy.Allow},
		"api/*": {policy.Deny, policy.Allow, policy.Allow}, "cli": {policy.Allow, policy.Allow, policy.Deny},
	} {
		cfg := policy.Config{Rules: []policy.Rule{{Caller: pattern, Do: policy.Deny}}}
		for i, door := range []string{"api", "http", "cli"} {
			d, err := cfg.Decide(&call.Request{Tool: &call.Tool{Name: "t"}, Caller: call.Caller{EntryPoint: door, ID: "ann"}})
			require.NoError(t, err)
			require.Equal(t, want[i], d.Do, "%s: %s", pattern, door)
		}
	}
}

// The name of a user who signed in counts, not what else a caller says.
func TestRulesForUsers(t *testing.T) {
	for pattern, want := range map[string][2]policy.Verdict{ // of alice, and of the one who calls a session alice
		"http/alice": {policy.Deny, policy.Deny}, "http/session*": {policy.Allow, policy.Allow}, "http/a*": {policy.Deny, policy.Deny}, "http/bob": {policy.Allow, policy.Allow},
	} {
		cfg := policy.Config{Rules: []policy.Rule{{Caller: pattern, Do: policy.Deny}}}
		for i, c := range []call.Caller{{EntryPoint: "http", User: "alice", ID: "session 1"}, {EntryPoint: "http", ID: "alice"}} {
			d, err := cfg.Decide(&call.Request{Tool: &call.Tool{Name: "t"}, Caller: c})
			require.NoError(t, err)
			require.Equal(t, want[i], d.Do, "%s: %v", pattern, c)
		}
	}
}

// Totals are of an account, whatever ids its callers have.
func TestTotalsAreOfAnAccount(t *testing.T) {
	p := policy.New(policy.Config{MaxTotalCalls: 2, MaxIdenticalCalls: 1}, nil)
	for i, want := range []toolerr.Code{"", "", toolerr.LimitReached} {
		code, _ := try(t, p.Stage, "ls", fmt.Sprintf(`{"n":%d}`, i), call.Caller{EntryPoint: "http", ID: fmt.Sprint(i), Account: "a"})
		require.Equal(t, want, code)
	}
	code, _ := try(t, p.Stage, "ls", `{"n":9}`, call.Caller{EntryPoint: "api", Account: "a"})
	require.Equal(t, toolerr.LimitReached, code, "by another door")
	code, _ = try(t, p.Stage, "ls", `{"n":0}`, call.Caller{EntryPoint: "http", ID: "0", Account: "b"})
	require.Empty(t, code)
	code, _ = try(t, p.Stage, "ls", `{"n":0}`, call.Caller{EntryPoint: "http", ID: "1", Account: "b"})
	require.Equal(t, toolerr.LimitReached, code, "the same call")
}

// What waits for approval, or is not approved, is not counted as made.
func TestWhatIsNotApprovedIsGivenBack(t *testing.T) {
	answer := error(&call.PendingError{})
	p := policy.New(policy.Config{
		Rules: []policy.Rule{{Tool: "rm", Do: policy.Ask}}, MaxTotalCalls: 2, MaxIdenticalCalls: 2,
		MaxCost: 2, Prices: map[string]float64{"*": 1},
	}, approval(func(next call.Handler) call.Handler {
		return func(ctx context.Context, req *call.Request) (*call.Result, error) {
			if answer != nil {
				return nil, answer
			}
			return next(ctx, req)
		}
	}))
	h := p.Stage(func(context.Context, *call.Request) (*call.Result, error) { return stagetest.Text("x"), nil })
	rm := func() toolerr.Code {
		_, err := h(t.Context(), &call.Request{Tool: &call.Tool{Name: "rm"}})
		return toolerr.CodeOf(err)
	}
	for range 10 {
		require.Equal(t, toolerr.PendingApproval, rm())
	}
	answer = nil
	require.Empty(t, rm())
	require.Empty(t, rm())
	require.Equal(t, toolerr.LimitReached, rm())
}

func TestARenamedToolGoesByBothNames(t *testing.T) {
	tool := &call.Tool{Name: "publish", Unrenamed: "git__push"}
	for _, c := range []struct {
		cfg  policy.Config
		want policy.Verdict
	}{
		{policy.Config{Block: []string{"git__*"}}, policy.Deny},
		{policy.Config{Block: []string{"pub*"}}, policy.Deny},
		{policy.Config{Allow: []string{"git__push"}}, policy.Allow},
		{policy.Config{Allow: []string{"ls"}}, policy.Deny},
		{policy.Config{ToolChoice: "git__push"}, policy.Allow},
		{policy.Config{ToolChoice: "ls"}, policy.Deny},
		{policy.Config{Rules: []policy.Rule{{Tool: "git__*", Do: policy.Ask}}}, policy.Ask},
	} {
		d, err := c.cfg.Decide(&call.Request{Tool: tool})
		require.NoError(t, err)
		require.Equal(t, c.want, d.Do, "%+v: %s", c.cfg, d.Text)
	}
}
