package dialect_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog/toolsearch"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/approve"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/policy"
)

// every is every setting, as toolroom.yaml has it.
const every = `
models:
  default: local/q
  providers:
    local: {base_url: "http://127.0.0.1:11434/v1", api_key_env: KEY, headers: {X-A: "${B}"}, timeout: 10s, strict: true, extra: {reasoning_effort: low, n: 1},
      models: [q, {name: r, window: 8000, max_output: 1000, images: true, prices: {input: 1, output: 2.5, cache_read: 0.1, cache_write: 3}}]}
    anthropic: {}
    vertex: {project: p, region: global, token_command: [gcloud, auth]}
    tests: {file: answers.yaml}
    c: {kind: command}
profiles:
  reader: {servers: [files*], allow: [files__read*], block: [files__read_secret]}
  all: {}
tool_pins: enforce
store: {url: "nats://${USER_OF}:pw@h:4222?name=a", token: $T, max_bytes: 1GiB}
audit: {required: true, dir: /var/log/toolroom, max_args: 1KiB, file_size: 1 MiB, keep: 10MB, age: 24h}
max_result: 64KiB
limits: {concurrent: 7, max_parallel: 4, queue: 10, queue_bytes: 2MiB, max_wait: 10s, max_depth: 3}
timeout: {default: 20s, tools: {slow: 1h, ever: off}, grace: 1s}
retry: {attempts: 2, base: 1ms, max_wait: 1s, per_attempt: 3s}
breaker: {failures: 2, within: 1s, open: 2s}
context: {max_tools: 50, tools_percent: 10, window: 128000, pinned: [grep], priority: ["files__*"]}
cache: {tools: [a, "b*"], ttl: 1m, max_bytes: 1000, max_entry: 100}
validate: {arguments: true, results: false}
policy:
  allow: ["*"]
  block: [bad]
  rules:
    - {tool: bash, caller: http, args: {command: "git *", /a/b: 7}, do: allow}
    - {tool: bash, do: ask, why: it can change things}
  max_calls_per_minute: {bash: 10, "*": 100}
  max_calls_per_turn: 1
  max_total_calls: 2
  max_identical_calls: 3
  max_rounds: off
  tool_choice: bash
  max_cost: 2.5
  prices: {"*": 0.01, bash: 1}
approval: {expires: 1m, wait: 2s, ask_client: false, callback: "https://h/x", callback_secret: $S, public_url: "https://me"}
`

func TestSettings(t *testing.T) {
	d := dialect.Parse("toolroom.yaml", []byte(every), dialect.Options{})
	require.Empty(t, d.Problems)
	s := dialect.Apply(d.Settings)
	require.Equal(t, []catalog.Profile{
		{Name: "reader", Servers: []string{"files*"}, Allow: []string{"files__read*"}, Block: []string{"files__read_secret"}}, {Name: "all"},
	}, s.Profiles)
	require.Equal(t, catalog.PinsEnforce, s.Pins)
	images := true
	require.Equal(t, lookup.Config{Default: "local/q", Providers: []lookup.Provider{
		{Name: "local", Kind: lookup.OpenAI, BaseURL: "http://127.0.0.1:11434/v1", KeyEnv: "KEY", Headers: map[string]secret.Text{"X-A": "${B}"}, Timeout: 10 * time.Second,
			Strict: true, Extra: []byte(`{"reasoning_effort":"low","n":1}`), Models: []lookup.Model{{Name: "q"},
				{Name: "r", Window: 8000, MaxOutput: 1000, Images: &images, Price: provider.Price{Input: 1, Output: 2.5, CacheRead: 0.1, CacheWrite: 3}}}},
		{Name: "anthropic", Kind: lookup.Anthropic},
		{Name: "vertex", Kind: lookup.Gemini, Project: "p", Region: "global", TokenCommand: []string{"gcloud", "auth"}},
		{Name: "tests", Kind: lookup.Scripted, File: "answers.yaml"},
		{Name: "c", Kind: lookup.Command},
	}}, s.Models)
	require.Equal(t, dialect.Store{URL: "nats://${USER_OF}:pw@h:4222?name=a", Token: "$T", MaxBytes: 1 << 30, File: "toolroom.yaml", Line: 15}, s.Store)
	want := dialect.Stages{}
	want.Audit.Required, want.Audit.Dir, want.Audit.MaxArgs = true, "/var/log/toolroom", 1<<10
	want.Audit.FileSize, want.Audit.Keep, want.Audit.Age = 1<<20, 10_000_000, 24*time.Hour
	want.Spill.MaxResult = 64 << 10
	want.Limit.Concurrent, want.Limit.MaxParallel, want.Limit.Queue, want.Limit.QueueBytes = 7, 4, 10, 2<<20
	want.Limit.MaxWait, want.Limit.MaxDepth = 10*time.Second, 3
	want.Timeout.Default, want.Timeout.Grace = 20*time.Second, time.Second
	want.Timeout.Tools = map[string]time.Duration{"slow": time.Hour, "ever": -1}
	want.Retry.Attempts, want.Retry.Base, want.Retry.MaxWait, want.Retry.PerAttempt = 2, time.Millisecond, time.Second, 3*time.Second
	want.Breaker.Failures, want.Breaker.Within, want.Breaker.Open = 2, time.Second, 2*time.Second
	want.Cache.Tools, want.Cache.TTL, want.Cache.MaxBytes, want.Cache.MaxEntry = []string{"a", "b*"}, time.Minute, 1000, 100
	want.Schemas.ResultsOff = true
	want.Policy = policy.Config{
		Allow: []string{"*"}, Block: []string{"bad"},
		Rules: []policy.Rule{
			{Tool: "bash", Caller: "http", Args: map[string]string{"command": "git *", "/a/b": "7"}, Do: policy.Allow},
			{Tool: "bash", Do: policy.Ask, Why: "it can change things"},
		},
		MaxCallsPerMinute: map[string]int{"bash": 10, "*": 100}, MaxCallsPerTurn: 1, MaxTotalCalls: 2, MaxIdenticalCalls: 3,
		MaxRounds: -1, ToolChoice: "bash", MaxCost: 2.5, Prices: map[string]float64{"*": 0.01, "bash": 1},
	}
	want.Approval = approve.Config{
		Expires: time.Minute, Wait: 2 * time.Second, ClientOff: true, PublicURL: "https://me",
		Callback: approve.Callback{URL: "https://h/x", Secret: "$S"},
	}
	require.Equal(t, want, s.Stages)
	require.Equal(t, toolsearch.Config{MaxTools: 50, ToolsPercent: 10, Window: 128000, Pinned: []string{"grep"}, Priority: []string{"files__*"}}, s.Offer)
	require.NoError(t, s.Stages.Validate())
}

// Other products' names for the same are taken, in a file of ours and below
// toolroom: in one of theirs.
func TestSettingsByOtherNames(t *testing.T) {
	for _, text := range []string{
		"tool_policy: {max_tool_calls_per_turn: 5, max_total_tool_calls: 6, blocklist: [x]}\ndefault_timeout_seconds: 7\nmax_concurrent_tools: 8\n",
		"policy: {maxToolCallsPerTurn: 5, max-total-tool-calls: 6, blocklist: [x]}\ntimeout: {default_timeout_seconds: 7}\nlimits: {max_concurrent_tools: 8}\n",
		"mcpServers: {}\ntoolroom:\n  policy: {max_calls_per_turn: 5, max_total_calls: 6, block: [x]}\n  timeout: 7s\n  limits: {concurrent: 8}\n",
		"policy: {max_calls_per_turn: 5, max_total_calls: 6, block: [x], max_parallel: 0x1}\ntimeout: 7s\nlimit: {concurrent: 8}\nmax_concurrent_tools: 2",
	} {
		d := dialect.Parse("any.yaml", []byte(text), dialect.Options{})
		if len(d.Problems) > 0 { // the last
			require.Len(t, d.Problems, 1)
			require.EqualError(t, d.Problems, "any.yaml:1: policy.max_parallel: want a whole number above 0")
		}
		s := dialect.Apply(d.Settings).Stages
		require.Equal(t, policy.Config{Block: []string{"x"}, MaxCallsPerTurn: 5, MaxTotalCalls: 6}, s.Policy, text)
		require.Equal(t, 7*time.Second, s.Timeout.Default, text)
		require.Equal(t, 8, s.Limit.Concurrent, text)
	}
}

func TestSettingsThatAreOff(t *testing.T) {
	for _, off := range []string{"off", "false"} {
		text := fmt.Sprintf("audit: %[1]s\nvalidate: %[1]s\ncache: %[1]s\ntimeout: %[1]s\nretry: %[1]s\nbreaker: %[1]s\nmax_result: %[1]s\ntool_pins: %[1]s\n", off)
		d := dialect.Parse("toolroom.yaml", []byte(text), dialect.Options{})
		require.Empty(t, d.Problems)
		require.NoError(t, schemaCheck(t)(text))
		s := dialect.Apply(d.Settings)
		var want dialect.Stages
		want.Audit.Off, want.Schemas.ArgumentsOff, want.Schemas.ResultsOff, want.Breaker.Off = true, true, true, true
		want.Timeout.Default, want.Retry.Attempts, want.Spill.MaxResult = -1, 1, -1
		require.Equal(t, want, s.Stages)
		require.Equal(t, catalog.PinsOff, s.Pins)
	}
}

func TestStoresByOneWord(t *testing.T) {
	for text, want := range map[string]dialect.Store{
		"sqlite": {}, "memory": {URL: "memory:"}, "memory:": {URL: "memory:"}, "nats://h": {URL: "nats://h"}, "tls://h,h2": {URL: "tls://h,h2"},
		"sqlite:/var/db": {Dir: "/var/db"}, "/var/db": {Dir: "/var/db"}, "db": {Dir: "db"}, "${STORE}": {URL: "${STORE}"},
	} {
		d := dialect.Parse("toolroom.yaml", []byte(fmt.Sprintf("store: %q", text)), dialect.Options{})
		require.Empty(t, d.Problems)
		want.File, want.Line = "toolroom.yaml", 1
		require.Equal(t, want, dialect.Apply(d.Settings).Store, text)
	}
}

// Each mistake is told with its place and what would be right, and the schema
// for editors finds it, too.
func TestMistakesInSettings(t *testing.T) {
	invalid := schemaCheck(t)
	for _, c := range []struct{ text, want string }{
		{"polcy: {}", "1: polcy is unknown here; servers belong under servers; did you mean policy?"},
		{"policy:\n  blok: [a]", "2: policy.blok: unknown; did you mean block?"},
		{"policy: {zzzzzz: 1}", "1: policy.zzzzzz: unknown; known are allow, block, rules, "},
		{"policy: []", "1: policy: want a map, not a list"},
		{"policy: {block: a}", "1: policy.block: want a list of strings, not a string"},
		{"policy:\n  rules:\n    - {tool: a}", "3: policy.rules[0]: do is missing: allow, ask or deny"},
		{"policy:\n  rules: [{do: alow}]", "2: policy.rules[0].do: want one of allow, ask, deny; did you mean allow?"},
		{"policy: {rules: {do: allow}}", "1: policy.rules: want a list of rules, not a map"},
		{"policy: {max_calls_per_minute: {a: 0}}", "1: policy.max_calls_per_minute.a: want a whole number above 0"},
		{"policy: {max_calls_per_minute: 200000}", "1: policy.max_calls_per_minute: want at most 100000"},
		{"policy: {max_total_calls: -1}", "1: policy.max_total_calls: want a whole number above 0"},
		{"policy: {max_cost: free}", "1: policy.max_cost: want a number from 0"},
		{"policy: {prices: {a: -1}}", "1: policy.prices.a: want a number from 0"},
		{"policy: {max_rounds: 0}", "1: policy.max_rounds: want a whole number above 0"},
		{"approval: {expires: 5}", "1: approval.expires: a number without a unit; want a duration like 10s"},
		{"approval: {secret: x}", "1: approval.secret: unknown"},
		{"profiles: {a/b: {}}", "1: profiles.a/b: a name has 1 to 64 of a-z, A-Z, 0-9, _ and -"},
		{"profiles: [a]", "1: profiles: want a map of profiles by name, not a list"},
		{"policy: {allow: []}", "1: policy.allow: an empty list would allow all tools"},
		{"profiles: {a: {allow: []}}", "1: profiles.a.allow: an empty list would allow all tools; to allow all, leave it out, or block \"*\""},
		{"profiles: {a: {alow: [x]}}", "1: profiles.a.alow: unknown; did you mean allow?"},
		{"tool_pins: yess", "1: tool_pins: want one of off, warn, enforce"},
		{"timeout: 30", "1: timeout: a number without a unit; want a duration like 10s"},
		{"timeout: soon", "1: timeout: want a duration like 10s"},
		{"timeout: {tools: {a: soon}}", "1: timeout.tools.a: want a duration like 10s"},
		{"max_result: 1 parsec", "1: max_result: want a size like 64KiB or 10MB"},
		{"cache: {max_bytes: 0}", "1: cache.max_bytes: want a size above 0, like 64KiB or 10MB"},
		{"cache: true", "1: cache: want a map, not true or false"},
		{"audit: {required: 1}", "1: audit.required: want true or false, not a number"},
		{"audit: {dir: x, path: y}", "1: audit.dir: want an absolute path"},
		{"limits: {queue: off}", "1: limits.queue: want a whole number above 0"},
		{"store: [a]", "1: store: want a string, not a list"},
		{"breaker: {failures: 1.5}", "1: breaker.failures: want a whole number above 0"},
	} {
		d := dialect.Parse("toolroom.yaml", []byte(c.text), dialect.Options{})
		require.ErrorContains(t, d.Problems.Err(), "toolroom.yaml:"+c.want, c.text)
		if c.text != "audit: {dir: x, path: y}" {
			require.Error(t, invalid(c.text), c.text)
		}
	}
	require.NoError(t, invalid(every))
}

func TestSettingsThatCannotWork(t *testing.T) {
	d := dialect.Parse("toolroom.yaml", []byte("policy: {max_rounds: 5, maxTools: 7}\ntool_policy: {}\n"), dialect.Options{})
	require.EqualError(t, d.Problems.Err(), "toolroom.yaml:2: tool_policy: appears twice, also on line 1")
	require.Empty(t, d.Problems.Warnings())
	s := dialect.Apply(d.Settings)
	require.Equal(t, 5, s.Stages.Policy.MaxRounds)
	require.Equal(t, 7, s.Offer.MaxTools)

	// What another product means by such a key is not guessed; what would be a
	// gap in the policy is told.
	d = dialect.Parse("config.toml", []byte("[profiles.o3]\nmodel='o3'\n[mcp_servers.x]\ncommand='y'\n[policy]\nblock=['z']\n"), dialect.Options{})
	require.NoError(t, d.Problems.Err())
	require.Empty(t, d.Settings)
	require.Len(t, d.Problems, 1)
	require.Equal(t, "config.toml:5: policy: ignored; in a file with servers of another product, settings belong under toolroom:", d.Problems[0].String())
	d = dialect.Parse("mcp.json", []byte(`{"mcpServers":{},"toolroom":{"polcy":{}}}`), dialect.Options{})
	require.EqualError(t, d.Problems.Err(), "mcp.json:1: toolroom.polcy is unknown; did you mean policy?")

	// A server may be called as a setting is.
	d = dialect.Parse("mcp.json", []byte(`{"cache":{"command":"redis-mcp"}}`), dialect.Options{})
	require.Empty(t, d.Problems)
	require.Len(t, d.Servers, 1)
}

// A pattern that no tool's name can be of would be a rule that never holds.
func TestPatternsThatCanMatchNoTool(t *testing.T) {
	d := dialect.Parse("toolroom.yaml", []byte("policy:\n  allow: ['a__*', b-1]\n  block: [bash, 'x?']\n  rules:\n    - {tool: 'v__d[47]', do: deny}\n    - {tool: '*', args: {a: 'x?[y]'}, do: deny, why: 'really?'}\n"), dialect.Options{})
	require.NoError(t, d.Problems.Err())
	const why = " cannot match a tool: names have letters, digits, _ and -, and * is the only wildcard"
	require.Equal(t, "toolroom.yaml:3: policy.block: x?"+why+"\ntoolroom.yaml:5: policy.rules[0].tool: v__d[47]"+why, d.Problems.Error())
}

func TestSettingsAreShownWithoutCredentials(t *testing.T) {
	text := `
store: {url: "nats://me:SEKRIT@h:4222", token: SEKRIT}
policy: {rules: [{tool: a, args: {password: SEKRIT, path: "/etc/*"}, do: deny}], max_total_calls: 5}
`
	d := dialect.Parse("toolroom.yaml", []byte(text), dialect.Options{})
	require.Empty(t, d.Problems)
	shown := fmt.Sprint(d.Settings[0].View(), d.Settings[1].View())
	require.NotContains(t, shown+fmt.Sprintf("%+v", d), "SEKRIT")
	require.Equal(t, "map[token:*** url:nats://***@h:4222] map[max_total_calls:5 rules:[map[args:map[password:*** path:/etc/*] do:deny tool:a]]]", shown)
}

// The configurations that README shows can be pasted.
func TestTheSettingsOfReadme(t *testing.T) {
	readme, err := os.ReadFile("../../../../README.md")
	require.NoError(t, err)
	blocks := strings.Split(string(readme), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		text, _, ok := strings.Cut(block, "```")
		require.True(t, ok)
		d := dialect.Parse("toolroom.yaml", []byte(text), dialect.Options{})
		require.Empty(t, d.Problems, text)
		require.NotEmpty(t, d.Settings, text)
		require.NoError(t, schemaCheck(t)(text), text)
	}
}

// So can those of docs/policy.md.
func TestTheSettingsOfThePolicyManual(t *testing.T) {
	manual, err := os.ReadFile("../../../../docs/policy.md")
	require.NoError(t, err)
	blocks := strings.Split(string(manual), "```yaml\n")[1:]
	require.Len(t, blocks, 2)
	for _, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		d := dialect.Parse("toolroom.yaml", []byte(text), dialect.Options{})
		require.Empty(t, d.Problems)
		require.NoError(t, schemaCheck(t)(text))
		require.NoError(t, dialect.Apply(d.Settings).Stages.Validate())
	}
}
