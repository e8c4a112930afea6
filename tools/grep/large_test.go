package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// mostMemory bounds the memory of a server: searching, one large file, and the
// program itself.
const mostMemory = workMemory + 80<<20

// TestLarge sends the real binary requests that flood, hang or break other
// tools. Each answer is within the budget and mentions its omissions.
func TestLarge(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	bin := mcpkittest.Build(t, "./tools/grep")
	root := t.TempDir()
	write := func(name string, data []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(root, name), data, 0o644))
	}
	var lines bytes.Buffer
	for i := range 500_000 {
		fmt.Fprintf(&lines, "line %d matches\n", i+1)
	}
	write("many.txt", lines.Bytes())
	long := append(bytes.Repeat([]byte("x"), 5_000_000), " needle end"...)
	write("long.txt", long)
	write("cr.txt", []byte("one\r\ntwo\r\nthree"))
	write(".env.large", bytes.Repeat([]byte("KEY=value\n"), maxMasked/10+1))
	client := mcpkittest.Start(t, bin, "--no-state", root)
	call := func(args string) mcpkittest.Result {
		got := client.Call("grep", args)
		require.LessOrEqual(t, len(got.Text), 48_000, args)
		return got
	}
	for _, c := range []struct{ args, header string }{
		{`{"pattern":"matches","path":"many.txt"}`, "500000 matches in 1 file, shown 1-100 (offset=100 for more; searched 1)"},
		{`{"pattern":"matches","path":"many.txt","head_limit":100000}`, "500000 matches in 1 file, shown 1-100000 (offset=100000 for more; searched 1)"},
		{`{"pattern":"matches","offset":499999,"path":"many.txt"}`, "500000 matches in 1 file, shown 500000-500000 (searched 1)"},
		{`{"pattern":".","path":"many.txt","-C":3,"-o":true}`, "9388895 matches in 1 file, shown 1-100 ("},
		{`{"pattern":"","path":"many.txt","output_mode":"count"}`, "500000 matches in 1 file (searched 1)"},
		{`{"pattern":"needle","path":"long.txt"}`, "1 match in 1 file (searched 1)"},
		{`{"pattern":"(x+x+)+y"}`, `0 matches for "(x+x+)+y" in . (searched 3; not searched: 1 secret)`},
		{`{"pattern":"(x+x+)+y","multiline":true}`, `0 matches for "(x+x+)+y" in . (searched 3; not searched: 1 secret)`},
		{`{"pattern":"matches.*9 matches","multiline":true,"path":"many.txt"}`, "1 match in 1 file (searched 1)"},
		{`{"pattern":"x","path":"long.txt","-o":true}`, "5000000 matches in 1 file, shown 1-100 ("},
		{`{"pattern":"x","path":"long.txt","-o":true,"offset":4999990}`, "5000000 matches in 1 file, shown 4999991-5000000 (searched 1)"},
		{`{"pattern":"x+","path":"long.txt","-o":true}`, "1 match in 1 file (searched 1)"},
		{`{"pattern":"KEY"}`, `0 matches for "KEY" in . (searched 3; not searched: 1 secret`},
		{`{"pattern":"KEY","path":".env.large"}`, `0 matches for "KEY" in .env.large (searched 0; not searched: 1 secret)`},
		{`{"pattern":"t.o","path":"cr.txt"}`, "1 match in 1 file (searched 1)"},
	} {
		got := call(c.args)
		require.False(t, got.IsError, got.Text)
		first, _, _ := strings.Cut(got.Text, "\n")
		require.Contains(t, first, c.header, c.args)
	}
	require.Contains(t, call(`{"pattern":"needle","path":"long.txt"}`).Text, " needle end  [column 5000002 of 5000011]\n")
	require.Contains(t, call(`{"pattern":"matches","path":"many.txt","head_limit":100000}`).Text, "note: only match counts per file shown")
	require.Equal(t, "1 match in 1 file (searched 1)\ncr.txt\n  1- one\n  2: two\n  3- three\n", call(`{"pattern":"t.o","path":"cr.txt"}`).Text)
	if _, peak, ok := mcpkittest.RSS(t, client.PID()); ok {
		require.Less(t, peak, int64(mostMemory))
	}
	require.Zero(t, client.Close())
}

// TestDeadlineInOneLine: a slow pattern on one huge line ends at its deadline
// with an answer, even if the line is searched as a whole.
func TestDeadlineInOneLine(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root := t.TempDir()
	const slow = `(a|b|x).{20,40}(x|y|4).{20,40}[^a-zA-Z0-9_ ]{3}`
	r := rand.New(rand.NewPCG(1, 2))
	var line strings.Builder
	for range 2_000_000 {
		line.WriteString([...]string{"alpha ", "beta ", "Gamma ", "xxxxxxx ", "foo_bar ", "42 ", "naïve "}[r.IntN(7)])
	}
	line.WriteString("end")
	require.NoError(t, os.WriteFile(filepath.Join(root, "long.txt"), []byte(line.String()), 0o644))
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", "--timeout", "300ms", root)
	for _, multiline := range []bool{false, true} {
		got := client.Call("grep", map[string]any{"pattern": slow, "multiline": multiline})
		require.False(t, got.IsError, got.Text)
		require.Contains(t, got.Text, "no matches so far (searched 0; stopped after")
		require.Equal(t, true, got.Meta["partial"])
	}
	// A fast pattern finishes in time, on a busy machine perhaps after retries.
	got := client.Call("grep", `{"pattern":"end$","-o":true}`)
	for until := time.Now().Add(mcpkittest.MaxWait); !strings.Contains(got.Text, "1 match in 1 file") && time.Now().Before(until); {
		got = client.Call("grep", `{"pattern":"end$","-o":true}`)
	}
	require.Contains(t, got.Text, "1 match in 1 file")

	patient := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	id := patient.Go("tools/call", mcpkittest.CallParams("grep", map[string]any{"pattern": slow}))
	patient.Notify("notifications/cancelled", map[string]any{"requestId": json.RawMessage(id)})
	got = patient.Call("grep", `{"pattern":"end$","-o":true}`)
	require.Contains(t, got.Text, "1 match in 1 file")
	require.Zero(t, patient.Close())
	require.Empty(t, patient.Untaken(), "what was cancelled is not answered")
}

// TestManyFiles: the memory of a search does not grow with the number of
// matching files.
func TestManyFiles(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	files := 20_000
	if testing.Short() {
		files = 2_000
	}
	root := t.TempDir()
	for i := range files {
		dir := filepath.Join(root, fmt.Sprint("a directory with a long name ", i/500))
		if i%500 == 0 {
			require.NoError(t, os.Mkdir(dir, 0o755))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("and a file ", i)), []byte("hit\n"), 0o644))
	}
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	got := client.Call("grep", `{"pattern":"hit","sort":"path","head_limit":2}`)
	require.Contains(t, got.Text, fmt.Sprintf("%d matches in %d files, shown 1-2 (offset=2 for more; searched %d)\n", files, files, files))
	got = client.Call("grep", fmt.Sprintf(`{"pattern":"hit","offset":%d,"output_mode":"files_with_matches"}`, files-1))
	require.Contains(t, got.Text, fmt.Sprintf("%d files match, shown %d-%d (searched %d)\n", files, files, files, files))
	if _, peak, ok := mcpkittest.RSS(t, client.PID()); ok {
		require.Less(t, peak, int64(mostMemory))
	}
}

// TestMessageBound: the answer also fits a message, in which quotes take twice
// the space; nothing is cut after the counts are computed.
func TestMessageBound(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root := t.TempDir()
	text := strings.Repeat(strings.Repeat(`"`, 60)+"\n", 20_000)
	require.NoError(t, os.WriteFile(filepath.Join(root, "a.txt"), []byte(text), 0o644))
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", "--max-tokens", "300000", root)
	for limit, reduced := range map[int]any{5_000: nil, 12_000: noText} {
		got := client.Call("grep", map[string]any{"pattern": `"`, "path": "a.txt", "head_limit": limit})
		require.False(t, got.IsError, got.Text)
		require.NotContains(t, got.Text, "[cut")
		require.EqualValues(t, limit, got.Meta["shown"])
		require.Equal(t, reduced, got.Meta["reduced"])
	}
}

// TestNamedFile: a file named by path is searched even beyond --max-file-size,
// in bounded memory; a search of its directory still skips and counts it.
func TestNamedFile(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	root := t.TempDir()
	const size = 160 << 20
	file, err := os.Create(filepath.Join(root, "big.log"))
	require.NoError(t, err)
	part := bytes.Repeat([]byte("an ordinary line of a log, as long as most\n"), 40_000)
	lines := 0
	for n := 0; n < size; n += len(part) {
		_, err := file.Write(part)
		require.NoError(t, err)
		lines += 40_000
	}
	_, err = file.WriteString("needle {\n}\n")
	require.NoError(t, err)
	require.NoError(t, file.Close())
	client := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/grep"), "--no-state", root)
	call := func(args string) string {
		got := client.Call("grep", args)
		require.False(t, got.IsError, got.Text)
		return got.Text
	}
	want := fmt.Sprintf("1 match in 1 file (searched 1)\nbig.log\n  %d- an ordinary line of a log, as long as most\n  %d: needle {\n  %d- }\n", lines, lines+1, lines+2)
	require.Equal(t, want, call(`{"pattern":"needle","path":"big.log","-C":1}`))
	require.Equal(t, want, call(`{"pattern":"^[^ ]+ \\{$","path":"big.log","-C":1}`))
	require.Contains(t, call(`{"pattern":"ordinary","path":"big.log","output_mode":"count"}`), fmt.Sprintf("big.log: %d\n", lines))
	require.Contains(t, call(`{"pattern":"needle"}`), "not searched: 1 larger than 64M (big.log)")
	if _, peak, ok := mcpkittest.RSS(t, client.PID()); ok {
		require.Less(t, peak, int64(64<<20))
	}
	require.Contains(t, call(`{"pattern":"needle \\{\\n}","path":"big.log","multiline":true,"-C":0}`), fmt.Sprintf("  %d: needle {\n  %d: }\n", lines+1, lines+2))
	require.Zero(t, client.Close())
}
