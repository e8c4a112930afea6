package mcpkittest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const server = "./pkg/mcpkit/mcpkittest/testdata/server"

func TestBuildWorksFromAnyDirectory(t *testing.T) {
	bin := Build(t, server)
	require.FileExists(t, bin)
	t.Chdir("testdata/script")
	require.Equal(t, bin, Build(t, server), "built once")
	root, err := moduleRoot()
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	t.Chdir(t.TempDir())
	_, err = moduleRoot()
	require.ErrorContains(t, err, "no go.mod")
}

func TestScripts(t *testing.T) {
	RunScripts(t, Build(t, server), "testdata/script")
}

func TestSnapshot(t *testing.T) {
	Snapshot(t, Build(t, server), "testdata/tool.json")
}

func TestClientInBothEras(t *testing.T) {
	bin := Build(t, server)
	for _, era := range []Era{Legacy, Modern} {
		c := StartWith(t, bin, Options{Era: era})
		got := c.Call("echo", map[string]any{"text": "hi", "image": true})
		require.Equal(t, "hi\n", got.Text)
		require.Equal(t, map[string]any{"lines": 1.0}, got.Meta)
		require.Equal(t, []string{"image/png"}, got.Images)
		require.False(t, got.IsError)
		got = c.Call("read", `{"path":"nowhere"}`)
		require.True(t, got.IsError)
		require.Equal(t, "NOT_FOUND", got.Code)
		require.Equal(t, -32602, c.Request("tools/call", CallParams("none", nil)).Error.Code)
		require.Zero(t, c.Close())
	}
}

func TestClientMatchesAnswersByID(t *testing.T) {
	c := Start(t, Build(t, server))
	var ids []string
	for range 50 {
		ids = append(ids, c.Go("tools/call", CallParams("echo", `{"text":"x"}`)))
	}
	for i := len(ids) - 1; i >= 0; i-- {
		require.Equal(t, ids[i], c.Answer(ids[i]).ID)
	}
	require.Empty(t, c.Untaken())
}

func TestClientAnswersTheServer(t *testing.T) {
	c := StartWith(t, Build(t, server), Options{Roots: []string{"/a b/ü"}})
	require.Equal(t, "/a b/ü", c.Call("roots", nil).Text)
	require.NotZero(t, c.PID())
	_, peak, ok := RSS(t, c.PID())
	if ok {
		require.Positive(t, peak)
	}
}

func TestClientTellsWhatIsNoMessage(t *testing.T) {
	c := &Client{t: t, untaken: map[string][]Answer{}, changed: make(chan struct{})}
	answers := 0
	c.storeMessage([]byte(`hello`), &answers)
	c.storeMessage([]byte(`{"jsonrpc":"2.0","id":1}`), &answers)
	c.storeMessage([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`), &answers)
	require.Len(t, c.badOutput, 2)
	require.Equal(t, "null", c.Answer("null").ID)
}

// A failing script reports why, and -update rewrites only the differences.
func TestScriptComparesAndUpdates(t *testing.T) {
	back := (&script{}).setReplacers("/tmp/x/root", "/tmp/x/state")
	for _, tc := range []struct {
		name, out string
		text      string
		want      string // "": holds
	}{
		{"equal", "1 ok\n| a\n| b\n", "a\nb\n", ""},
		{"wildcards", "1 ok\n| ...\n| b[..]d\n| ...\n", "a\nbcd\ne\nf", ""},
		{"any number of lines is none", "1 ok\n| a\n| ...\n| b\n", "a\nb", ""},
		{"line missing", "1 ok\n| a\n", "a\nb", "+ b"},
		{"a pattern is no regular expression", "1 ok\n| a.[..]\n", "ab", "- a.[..]"},
		{"contains", "1 ok\n~ ell\n", "hello", ""},
		{"lacks", "1 ok\n~ x\n", "hello", `lacks "x"`},
		{"forbidden", "1 ok\n!~ ell\n", "hello", "must not have"},
		{"kind", "1 error STALE\n", "hello", "want error STALE, got ok"},
		{"root", "1 ok\n| $ROOT/a\n", "/tmp/x/root/a", ""},
		{"meta", `1 ok` + "\n" + `meta {"n":1}` + "\n", "", ""},
		{"meta differs", `1 ok` + "\n" + `meta {"n":2}` + "\n", "", "toolroom/result/n: want 2, got 1"},
		{"meta missing", `1 ok` + "\n" + `meta {"m":"*"}` + "\n", "", "toolroom/result/m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			blocks, err := parseExpectations(tc.out, true)
			require.NoError(t, err)
			require.Equal(t, tc.out, formatExpectations(blocks), "writing is reading backwards")
			got := actualAnswer{kind: "ok", text: tc.text, meta: map[string]any{"n": 1.0}}
			fault := blocks[0].mismatch(got, back.expandVars, back.restoreVars)
			if tc.want == "" {
				require.Empty(t, fault)
				return
			}
			require.Contains(t, fault, tc.want)
			blocks[0].setExpected(got, back.restoreVars)
			if blocks[0].text != nil {
				require.Empty(t, blocks[0].mismatch(got, back.expandVars, back.restoreVars))
			}
		})
	}
}

func TestScriptsAreReadStrictly(t *testing.T) {
	for _, out := range []string{"| a\n", "1\n", "1 fine\n", "1 error\n", "1 ok\nmeta {x\n", "notify\n"} {
		_, err := parseExpectations(out, true)
		require.Error(t, err, out)
	}
	s := &script{root: t.TempDir()}
	for _, name := range []string{"../x", "/x", "a/../../x"} {
		_, err := s.pathInRoot(name)
		require.Error(t, err, name)
	}
	require.ErrorContains(t, s.runSetupLine("explode x"), "no such verb")
	require.True(t, errors.Is(s.runSetupLine("crlf gone"), os.ErrNotExist))
}

func TestIDsOfScripts(t *testing.T) {
	for script, wire := range map[string]string{"1": "1", "null": "null", "own": `"own"`} {
		require.Equal(t, wire, idToWire(script))
		require.Equal(t, script, idFromWire(wire))
	}
	require.Equal(t, `"1"`, idFromWire(`"1"`))
	require.True(t, json.Valid([]byte(idToWire("a"))))
}

// -update writes the actual answer, with $ROOT for the directory, and keeps
// what matches, including wildcards.
func TestUpdateRewritesOnlyWhatFails(t *testing.T) {
	*update = true
	defer func() { *update = false }()
	bin := Build(t, server)
	file := filepath.Join(t.TempDir(), "x.txtar")
	const before = `About updating.
-- a.txt --
alpha
-- in --
read {"path":"a.txt"}
read {"path":"b.txt"}
read {"path":"a.txt"}
-- out --
# stays
1 ok
| al[..]
2 ok
| wrong
!~ never
-- in.oneshot --
{"text":"x"}
`
	const after = `About updating.
-- a.txt --
alpha
-- in --
read {"path":"a.txt"}
read {"path":"b.txt"}
read {"path":"a.txt"}
-- out --
# stays
1 ok
| al[..]
2 error NOT_FOUND
| b.txt is not there; see $HOME or $ROOT/b.txt
!~ never
3 ok
| alpha
-- in.oneshot --
{"text":"x"}
-- out.oneshot --
ok
| x
`
	require.NoError(t, os.WriteFile(file, []byte(before), 0o644))
	runScript(t, bin, file)
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, after, string(got))
	*update = false
	runScript(t, bin, file)
}

// An up-to-date binary is not linked again, in any process.
func TestBuildLinksOnce(t *testing.T) {
	first, err := buildBinary(server)
	require.NoError(t, err)
	before, err := os.Stat(first)
	require.NoError(t, err)
	second, err := buildBinary(server)
	require.NoError(t, err)
	require.Equal(t, first, second)
	after, err := os.Stat(second)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after))
	require.NoFileExists(t, fmt.Sprintf("%s.%d", first, os.Getpid()))
}
