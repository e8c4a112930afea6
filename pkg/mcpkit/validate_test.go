package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/callerror"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// searchArgs has one argument of each kind.
type searchArgs struct {
	Pattern string            `json:"pattern"`
	Path    string            `json:"path,omitempty" alias:"file_path"`
	Mode    string            `json:"output_mode,omitempty" enum:"content,count" default:"content"`
	Limit   int               `json:"limit,omitempty" default:"100" min:"1" max:"1000"`
	After   int               `json:"-A,omitempty"`
	Case    bool              `json:"-i,omitempty"`
	Big     uint64            `json:"big,omitempty"`
	Small   int8              `json:"small,omitempty"`
	Ratio   float64           `json:"ratio,omitempty"`
	Globs   []string          `json:"globs,omitempty" max:"3"`
	Lines   []int             `json:"lines,omitempty"`
	Glob    []string          `json:"glob,omitempty" bare:"true"`
	Edits   []edit            `json:"edits,omitempty"`
	Env     map[string]int    `json:"env,omitempty"`
	Wait    time.Duration     `json:"wait,omitempty" max:"1m"`
	Data    []byte            `json:"data,omitempty"`
	Addr    netip.Addr        `json:"addr,omitzero"`
	Any     any               `json:"any,omitempty"`
	Raw     json.RawMessage   `json:"raw,omitempty"`
	Exact   string            `json:"exact,omitempty" verbatim:"true"`
	Maybe   *int              `json:"maybe"`
	Tree    *tree             `json:"tree,omitempty"`
	Opts    map[string]string `json:"opts,omitempty"`
	Run     string            `json:"run,omitempty" argv:"true"`
	MaxHits int               `json:"max_hits,omitempty" hidden:"true"`
}

// calls runs a tool with arguments A and records the arguments of its function.
type calls[A any] struct {
	tool *mcpkit.Tool
	got  *A
}

func recorder[A any](t testing.TB, d mcpkit.Def) *calls[A] {
	t.Helper()
	c := &calls[A]{}
	d.Name = "search"
	tool, err := mcpkit.NewTool(d, func(_ context.Context, a A) (*mcpkit.Result, error) {
		c.got = &a
		return &mcpkit.Result{Text: "1 match"}, nil
	})
	require.NoError(t, err)
	c.tool = tool
	return c
}

func (c *calls[A]) call(args string) *mcpkit.CallResult {
	c.got = nil
	return c.tool.Call(context.Background(), json.RawMessage(args))
}

func TestFaultsAreNamedInPlainWords(t *testing.T) {
	c := recorder[searchArgs](t, mcpkit.Def{})
	for args, want := range map[string]string{
		`{"pattern":"x","limit":"abc"}`:                   `/limit must be an integer, got string "abc"`,
		`{"pattern":"x","limit":1.5}`:                     `/limit must be an integer, got number 1.5`,
		`{"pattern":"x","limit":0}`:                       `/limit must be from 1 to 1000, got 0`,
		`{"pattern":"x","limit":[1]}`:                     `/limit must be an integer, got a list`,
		`{"pattern":"x","limit":true}`:                    `/limit must be an integer, got boolean true`,
		`{"pattern":7}`:                                   `/pattern must be a string, got number 7`,
		`{"pattern":"x","output_mode":"contents"}`:        `/output_mode must be one of "content", "count", got "contents": did you mean "content"?`,
		`{"pattern":"x","-i":"yes"}`:                      `/-i must be a boolean (true or false), got string "yes"`,
		`{"pattern":"x","-i":1}`:                          `/-i must be a boolean`,
		`{"pattern":"x","small":300}`:                     `/small is out of range: 300`,
		`{"pattern":"x","small":-129}`:                    `/small is out of range: -129`,
		`{"pattern":"x","big":18446744073709551616}`:      `/big is out of range`,
		`{"pattern":"x","big":-1}`:                        `/big is out of range: -1`,
		`{"pattern":"x","ratio":1e999}`:                   `/ratio is out of range: 1e999`,
		`{"pattern":"x","ratio":"NaN"}`:                   `/ratio must be a number, got string "NaN"`,
		`{"pattern":"x","limit":1e400000000}`:             `/limit is out of range`,
		`{"pattern":"x","globs":["a","b","c","d"]}`:       `/globs must have at most 3 items, got 4`,
		`{"pattern":"x","globs":["a",2]}`:                 `/globs/1 must be a string, got number 2`,
		`{"pattern":"x","lines":{"a":1}}`:                 `/lines must be a list of integers, got an object`,
		`{"pattern":"x","edits":[{"old_string":"a"},{}]}`: `missing: old_string (string, required) at /edits/1/old_string`,
		`{"pattern":"x","edits":[{"old":"a"}]}`:           `missing: old_string`,
		`{"pattern":"x","edits":[{"oldStrng":"a"}]}`:      `/edits/0/oldStrng is not an argument: did you mean old_string?`,
		`{"pattern":"x","env":{"a/b~c":"x"}}`:             `/env/a~1b~0c must be an integer`,
		`{"pattern":"x","wait":"soon"}`:                   `/wait must be a duration like "30s" or "1m30s", got string "soon"`,
		`{"pattern":"x","wait":"2m"}`:                     `/wait must be at most 1m, got "2m"`,
		`{"pattern":"x","data":"*"}`:                      `/data must be base64`,
		`{"pattern":"x","addr":"1.2.3"}`:                  `/addr is not valid`,
		`{"pattern":"x","tree":{"name":"a","kids":[{}]}}`: `missing: name (string, required) at /tree/kids/0/name`,
		`{"pattern":"x","pattern":"y"}`:                   `/pattern is given twice`,
		`{"pattern":"x","any":{"a":1,"a":2}}`:             `/any/a is given twice`,
		`{"pattern":"x","Paht":"a"}`:                      `/Paht is not an argument: did you mean path?`,
		`{"pattern":"x","paths":["a"]}`:                   `/paths is not an argument: did you mean path?`,
		`{"pattern":"x","path":"a","filePath":"b"}`:       `/filePath and path are the same argument: give only path`,
		`{"pattern":"x","maxHits":1,"max_hits":2}`:        `/max_hits and maxHits are the same argument: give only max_hits`,
		`{"pattern":"x","run":["ls",1]}`:                  `/run must be a string, got a list`,
		`{"pattern":"x","path":["ls"]}`:                   `/path must be a string, got a list`,
		`{"pattern":"x","max_hits":"x"}`:                  `/max_hits must be an integer, got string "x"`,
		`{"pattern":"x","path":"a","file_path":"b"}`:      `/file_path and path are the same argument: give only path`,
		`{"pattern":"\ud800"}`:                            `/pattern holds half of a surrogate pair`,
		`{"pattern":"x","any":["\udc00"]}`:                `/any/0 holds half of a surrogate pair`,
		"{\"pattern\":\"\xff\"}":                          `invalid UTF-8 at byte 12`,
		`{"pattern":"x"`:                                  `the arguments are not valid JSON`,
		`[]`:                                              `the arguments must be an object, got a list`,
		`"x"`:                                             `the arguments must be an object, got string "x"`,
		`{"pattern":"x","limit":"` + "\u202e\x7f" + `"}`:  `got string "\u202e\x7f"`,
		`{"pattern":"x","a":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`: `nested more than 200 levels deep`,
	} {
		res := c.call(args)
		require.True(t, res.IsError, args)
		require.Equal(t, toolerr.InvalidParams, missingOr(res.Code, want), args)
		require.Contains(t, res.Text, want, args)
		require.Nil(t, c.got, "the function does not run")
		require.Contains(t, res.Text, "\nsearch takes: pattern (string, required), path (string), ", "the next step")
	}
}

// missingOr returns code, except that the code of missing arguments becomes
// InvalidParams if want expects a missing argument.
func missingOr(code toolerr.Code, want string) toolerr.Code {
	if strings.HasPrefix(want, "missing: ") && code == toolerr.MissingParameter {
		return toolerr.InvalidParams
	}
	return code
}

func TestMissingAloneHasItsCode(t *testing.T) {
	c := recorder[searchArgs](t, mcpkit.Def{})
	const missing = "missing: pattern (string, required) at /pattern"
	for _, args := range []string{``, ` `, `null`, `{}`, `{"pattern":null}`, `{"path":"a"}`} {
		res := c.call(args)
		require.Equal(t, toolerr.MissingParameter, res.Code, args)
		require.Contains(t, res.Text, missing, args)
		require.JSONEq(t, `{"invalid":["/pattern"]}`, string(res.Details))
	}
	res := c.call(`{"limit":"x","Paht":"y","globs":[1]}`)
	require.Equal(t, toolerr.InvalidParams, res.Code, "mixed with another fault")
	for _, want := range []string{"4 invalid arguments for search:\n", missing, "/limit must be", "/Paht is not", "/globs/0 must be"} {
		require.Contains(t, res.Text, want)
	}
	var invalid *callerror.ValidationError
	require.ErrorAs(t, res.Err, &invalid)
	require.Equal(t, callerror.ArgsInvalid, invalid.Type)
	require.Equal(t, "search", invalid.Tool)
	require.Equal(t, "/limit", invalid.Path)
	require.Equal(t, 3, strings.Count(invalid.Detail, "\n"))
	require.ErrorIs(t, res.Err, toolerr.New(toolerr.InvalidParams, ""))
}

func TestDeviationsAreTakenAndNoted(t *testing.T) {
	five := 5
	base := searchArgs{Pattern: "x", Mode: "content", Limit: 100}
	with := func(change func(*searchArgs)) searchArgs { a := base; change(&a); return a }
	c := recorder[searchArgs](t, mcpkit.Def{})
	for _, tc := range []struct {
		args, note string
		want       searchArgs
	}{
		{`{}`, ``, base},
		{`{"limit":10.0,"ratio":1}`, ``, with(func(a *searchArgs) { a.Limit, a.Ratio = 10, 1 })},
		{`{"limit":1e2}`, ``, base},
		{`{"big":18446744073709551615}`, ``, with(func(a *searchArgs) { a.Big = math.MaxUint64 })},
		{`{"small":-128,"-A":-9223372036854775808}`, ``, with(func(a *searchArgs) { a.Small, a.After = -128, math.MinInt64 })},
		{`{"limit":"10"}`, `/limit: "10" taken as the number 10`, with(func(a *searchArgs) { a.Limit = 10 })},
		{`{"ratio":" 1.5 "}`, `/ratio: " 1.5 " taken as the number 1.5`, with(func(a *searchArgs) { a.Ratio = 1.5 })},
		{`{"-i":"True"}`, `/-i: "True" taken as true`, with(func(a *searchArgs) { a.Case = true })},
		{`{"globs":"a,b"}`, `/globs: string "a,b" taken as a list with one item`, with(func(a *searchArgs) { a.Globs = []string{"a,b"} })},
		{`{"globs":"[\"a\",\"b\"]"}`, `/globs: a string parsed as a list`, with(func(a *searchArgs) { a.Globs = []string{"a", "b"} })},
		{`{"globs":"[id].tsx"}`, `taken as a list with one item`, with(func(a *searchArgs) { a.Globs = []string{"[id].tsx"} })},
		{`{"glob":"*.go"}`, ``, with(func(a *searchArgs) { a.Glob = []string{"*.go"} })},
		{`{"globs":""}`, `/globs: "" taken as an empty list`, with(func(a *searchArgs) { a.Globs = []string{} })},
		{`{"globs":[]}`, ``, with(func(a *searchArgs) { a.Globs = []string{} })},
		{`{"lines":"7"}`, `/lines/0: "7" taken as the number 7`, with(func(a *searchArgs) { a.Lines = []int{7} })},
		{`{"lines":[1,"2"]}`, `/lines/1: "2" taken as the number 2`, with(func(a *searchArgs) { a.Lines = []int{1, 2} })},
		{`{"edits":{"old_string":"a"}}`, `/edits: an object taken as a list with one item`, with(func(a *searchArgs) { a.Edits = []edit{{Old: "a"}} })},
		{`{"edits":"a"}`, `/edits/0: "a" taken as old_string`, with(func(a *searchArgs) { a.Edits = []edit{{Old: "a"}} })},
		{`{"edits":["a","b"]}`, `/edits/1: "b" taken as old_string`, with(func(a *searchArgs) { a.Edits = []edit{{Old: "a"}, {Old: "b"}} })},
		{`{"env":"{\"a\":1}"}`, `/env: a string parsed as an object`, with(func(a *searchArgs) { a.Env = map[string]int{"a": 1} })},
		{`{"limit":null,"path":"null","-i":"undefined"}`, `treated as not given: /limit, /path, /-i`, base},
		{`{"exact":"null"}`, ``, with(func(a *searchArgs) { a.Exact = "null" })},
		{`{"globs":["null"]}`, ``, with(func(a *searchArgs) { a.Globs = []string{"null"} })},
		{`{"maybe":null}`, `treated as not given: /maybe`, base},
		{`{"maybe":5}`, ``, with(func(a *searchArgs) { a.Maybe = &five })},
		{`{"file_path":"a"}`, `/file_path: taken as path`, with(func(a *searchArgs) { a.Path = "a" })},
		{`{"path":"a","file_path":"a"}`, ``, with(func(a *searchArgs) { a.Path = "a" })},
		{`{"filePath":"a"}`, `/filePath: taken as path`, with(func(a *searchArgs) { a.Path = "a" })},
		{`{"OutputMode":"count"}`, `/OutputMode: taken as output_mode`, with(func(a *searchArgs) { a.Mode = "count" })},
		{`{"edits":[{"oldString":"a"}]}`, `/edits/0/oldString: taken as old_string`, with(func(a *searchArgs) { a.Edits = []edit{{Old: "a"}} })},
		{`{"max_hits":3}`, ``, with(func(a *searchArgs) { a.MaxHits = 3 })},
		{`{"maxHits":3}`, ``, with(func(a *searchArgs) { a.MaxHits = 3 })},
		{`{"run":["ls","a b","it's",""]}`, `a list of words joined to the command`, with(func(a *searchArgs) { a.Run = `ls 'a b' 'it'\''s' ''` })},
		{`{"run":["bash","-lc","a | b"]}`, `joined to the command "a | b"`, with(func(a *searchArgs) { a.Run = "a | b" })},
		{`{"explanation":"to see","taskProgress":"1"}`, ``, base},
		{`{"explanation":{}}`, `/explanation: unknown argument ignored`, base},
		{`{"colour":"red"}`, `/colour: unknown argument ignored`, base},
		{`{"wait":1500}`, `/wait: 1500 taken as milliseconds: 1.5s`, with(func(a *searchArgs) { a.Wait = 1500 * time.Millisecond })},
		{`{"wait":"1m"}`, ``, with(func(a *searchArgs) { a.Wait = time.Minute })},
		{`{"data":"AQI=","addr":"::1"}`, ``, with(func(a *searchArgs) { a.Data, a.Addr = []byte{1, 2}, netip.IPv6Loopback() })},
		{`{"data":"-_8"}`, ``, with(func(a *searchArgs) { a.Data = []byte{0xfb, 0xff} })},
		{`{"any":{"n":9007199254740993,"f":1.5,"l":[null,true]}}`, ``, with(func(a *searchArgs) {
			a.Any = map[string]any{"n": json.Number("9007199254740993"), "f": 1.5, "l": []any{nil, true}}
		})},
		{`{"raw":{ "a" : 1e2 }}`, ``, with(func(a *searchArgs) { a.Raw = json.RawMessage(`{ "a" : 1e2 }`) })},
		{`{"tree":{"name":"a","kids":[{"name":"b"}]}}`, ``, with(func(a *searchArgs) {
			a.Tree = &tree{Name: "a", Kids: []*tree{{Name: "b"}}}
		})},
		{`{"output_mode":"c\u006funt"}`, ``, with(func(a *searchArgs) { a.Mode = "count" })},
		{`{"path":"\ud83d\ude00"}`, ``, with(func(a *searchArgs) { a.Path = "😀" })},
	} {
		args := strings.Replace(tc.args, "{", `{"pattern":"x",`, 1)
		args = strings.Replace(args, ",}", "}", 1)
		res := c.call(args)
		require.False(t, res.IsError, "%s: %s", args, res.Text)
		require.Equal(t, tc.want, *c.got, args)
		if tc.note == "" {
			require.Equal(t, "1 match", res.Text, args)
		} else {
			require.Contains(t, res.Text, "note: ", args)
			require.Contains(t, res.Text, tc.note, args)
		}
	}
	require.False(t, c.call(`"{\"pattern\":\"x\"}"`).IsError, "arguments encoded twice")
}

func TestRefuseUnknown(t *testing.T) {
	c := recorder[searchArgs](t, mcpkit.Def{RefuseUnknown: true})
	res := c.call(`{"pattern":"x","colour":"red"}`)
	require.Equal(t, toolerr.InvalidParams, res.Code)
	require.Contains(t, res.Text, "/colour is not an argument")
	require.False(t, c.call(`{"pattern":"x","file_path":"a"}`).IsError, "an alias is known")
	require.False(t, c.call(`{"pattern":"x","explanation":"to see"}`).IsError, "why it is called changes nothing")
}

// Notes about ignored or converted arguments are above the answer, those about
// renamed ones below it.
func TestNotesOfArgumentsStandFirst(t *testing.T) {
	c := recorder[searchArgs](t, mcpkit.Def{})
	want := "note: treated as not given: /ratio\nnote: /colour: unknown argument ignored\nnote: /limit: \"5\" taken as the number 5\n" +
		"1 match\nnote: /filePath: taken as path"
	require.Equal(t, want, c.call(`{"pattern":"x","filePath":"a","colour":"red","limit":"5","ratio":null}`).Text)
}

// A hidden argument is accepted, and no text for clients names it.
func TestHiddenArguments(t *testing.T) {
	c := recorder[searchArgs](t, mcpkit.Def{})
	require.Contains(t, string(c.tool.Definition()), `"run"`)
	require.NotContains(t, string(c.tool.Definition()), "max_hits")
	strict, _ := c.tool.Schema(true)
	require.NotContains(t, string(strict), "max_hits")
	res := c.call(`{"pattern":5}`)
	require.Contains(t, res.Text, "run (string)")
	require.NotContains(t, res.Text, "max_hits")
	_, err := mcpkit.NewTool(mcpkit.Def{Name: "x"}, func(context.Context, struct {
		A string `json:"a" hidden:"true"`
	}) (*mcpkit.Result, error) {
		return nil, nil
	})
	require.ErrorContains(t, err, "a is required: callers cannot know it")
}

func TestEmbeddedAndShadowedFieldsAreFilled(t *testing.T) {
	c := recorder[struct {
		Shadowed
		*Page2
		Path string `json:"path"`
	}](t, mcpkit.Def{})
	require.False(t, c.call(`{"path":"a","inner":"b","offset":3}`).IsError)
	require.Equal(t, "a", c.got.Path)
	require.Empty(t, c.got.Shadowed.Path)
	require.Equal(t, "b", c.got.Inner)
	require.Equal(t, 3, c.got.Offset)
}

// Page2 is embedded by pointer.
type Page2 struct {
	Offset int `json:"offset,omitempty"`
}

// Three megabytes of arguments, all wrong, give a short answer.
func TestManyFaultsGiveAShortAnswer(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	c := recorder[searchArgs](t, mcpkit.Def{})
	var unknown strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&unknown, `"unknown argument %d":1,`, i)
	}
	for name, args := range map[string]string{
		"items":   `{"pattern":"x","edits":[` + strings.Repeat(`{},`, 300_000) + `{}]}`,
		"unknown": `{` + unknown.String() + `"limit":"x"}`,
		"notes":   `{` + unknown.String() + `"pattern":"x"}`,
		"value":   `{"limit":"` + strings.Repeat("x", 3<<20) + `"}`,
		"name":    `{"` + strings.Repeat("x", 3<<20) + `":1}`,
	} {
		res := c.call(args)
		require.Less(t, len(res.Text), 8<<10, name)
		require.Less(t, len(res.JSON()), 16<<10, name)
	}
}

// Any input gives a valid answer: an error, or a call whose arguments survive
// being encoded and sent again.
func FuzzCall(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{}`, `{"pattern":"x"}`, `{"pattern":"x","limit":"10","globs":"a","-i":"true","path":null}`,
		`{"pattern":"\ud800"}`, `{"Pattern":1,"edits":[{"oldString":2}],"tree":{"kids":[{}]}}`, `{"pattern":"x","any":[1e999,{"a":1}]}`,
		`{"pattern":"x","wait":1e3,"big":1e19,"small":-0,"raw":[null],"env":{"":1}}`, "{\"pattern\":\"\xff\"}", `[`, `"{}"`,
	} {
		f.Add([]byte(seed))
	}
	c := recorder[searchArgs](f, mcpkit.Def{Output: struct {
		N int `json:"n"`
	}{}})
	tool, err := c.tool.Structured()
	require.NoError(f, err)
	c.tool = tool
	schema := compile(f, tool.OutputSchema())
	f.Fuzz(func(t *testing.T, args []byte) {
		res := c.call(string(args))
		out := res.JSON()
		require.True(t, json.Valid(out) && utf8.Valid(out), "%q", out)
		var wire struct{ StructuredContent any }
		require.NoError(t, json.Unmarshal(out, &wire))
		require.NoError(t, schema.Validate(wire.StructuredContent))
		if res.IsError {
			require.Contains(t, []toolerr.Code{toolerr.InvalidParams, toolerr.MissingParameter}, res.Code, "%v", res.Err)
			require.Nil(t, c.got)
			return
		}
		first := *c.got
		first.Wait = 0 // encoding/json writes it as a number of nanoseconds
		again, err := json.Marshal(first)
		require.NoError(t, err)
		require.False(t, c.call(string(again)).IsError, "%s", again)
		c.got.Raw, first.Raw = nil, nil // white space differs
		got, err := json.Marshal(c.got)
		require.NoError(t, err)
		want, err := json.Marshal(first)
		require.NoError(t, err)
		require.True(t, bytes.Equal(got, want), "%s\n%s", got, want)
	})
}

func TestErrorTypes(t *testing.T) {
	err := fmt.Errorf("calling: %w", &callerror.TimeoutError{Tool: "grep", After: 20 * time.Second})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, toolerr.Timeout, toolerr.CodeOf(err))
	require.ErrorContains(t, err, "grep did not finish within 20s")
	cause := errors.New("boom")
	err = &callerror.ExecutionError{Tool: "grep", Phase: "execute", Message: "boom", Cause: cause}
	require.ErrorIs(t, err, cause)
	require.Equal(t, toolerr.ExecutionError, toolerr.CodeOf(err))
}

// The value's type selects among the properties that share a name.
func TestATypeTellsThePropertyOfAnAlias(t *testing.T) {
	type sharedArgs struct {
		Pattern string   `json:"pattern" alias:"regex,expr"`
		Limit   int      `json:"limit,omitempty" alias:"count"`
		Regex   *bool    `json:"is_regex,omitempty" alias:"regex" hidden:"true"`
		Count   bool     `json:"count,omitempty" hidden:"true"`
		Words   []string `json:"words,omitempty" alias:"expr"`
	}
	c := recorder[sharedArgs](t, mcpkit.Def{})
	yes, no := true, false
	for args, want := range map[string]sharedArgs{
		`{"regex":"a"}`:                          {Pattern: "a"},
		`{"pattern":"a","regex":true}`:           {Pattern: "a", Regex: &yes},
		`{"regex":false,"pattern":"a"}`:          {Pattern: "a", Regex: &no},
		`{"pattern":"a","regex":"true"}`:         {Pattern: "a", Regex: &yes},
		`{"regex":"true"}`:                       {Pattern: "true"},
		`{"regex":"a","is_regex":true}`:          {Pattern: "a", Regex: &yes},
		`{"pattern":"a","regex":null}`:           {Pattern: "a"},
		`{"expr":"a","count":3}`:                 {Pattern: "a", Limit: 3},
		`{"expr":"a","count":true}`:              {Pattern: "a", Count: true},
		`{"expr":"a","count":"true"}`:            {Pattern: "a", Count: true},
		`{"expr":"a","count":"3"}`:               {Pattern: "a", Limit: 3},
		`{"pattern":"a","expr":["b"]}`:           {Pattern: "a", Words: []string{"b"}},
		`{"pattern":"a","Regex":true,"Count":7}`: {Pattern: "a", Regex: &yes, Limit: 7},
	} {
		res := c.call(args)
		require.False(t, res.IsError, "%s: %s", args, res.Text)
		require.Equal(t, &want, c.got, args)
	}
	for args, want := range map[string]string{
		`{"pattern":"a","regex":"b"}`:         "/regex and pattern are the same argument: give only pattern",
		`{"pattern":"a","regex":7}`:           "/regex and pattern are the same argument: give only pattern",
		`{"pattern":"a","count":[1]}`:         "/count must be a boolean (true or false), got a list",
		`{"pattern":"a","limit":1,"count":2}`: "/count and limit are the same argument: give only limit",
		`{"regex":true}`:                      "missing: pattern",
		`{"regex":7}`:                         "/regex must be a string, got number 7",
	} {
		res := c.call(args)
		require.True(t, res.IsError, args)
		require.Contains(t, res.Text, want, args)
	}
}
