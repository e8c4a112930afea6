package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/state"
	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// fixture is a root served by a tool in this process.
type fixture struct {
	t    testing.TB
	root string
	kept state.Config
	tool *mcpkit.Tool
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, root: t.TempDir(), kept: state.Config{Dir: t.TempDir()}}
	f.restart()
	return f
}

// restart creates the tool again, as a new process would.
func (f *fixture) restart() {
	f.t.Helper()
	served, err := newTools(sandbox.Config{Roots: []string{f.root}}, f.kept)
	require.NoError(f.t, err)
	f.tool = served[0]
}

func (f *fixture) write(name string, data []byte) {
	f.t.Helper()
	require.NoError(f.t, os.WriteFile(filepath.Join(f.root, name), data, 0o644))
}

func (f *fixture) callWith(ctx context.Context, args map[string]any) *mcpkit.CallResult {
	f.t.Helper()
	raw, err := json.Marshal(args)
	require.NoError(f.t, err)
	return f.tool.Call(ctx, raw)
}

func (f *fixture) call(args map[string]any) *mcpkit.CallResult {
	f.t.Helper()
	return f.callWith(context.Background(), args)
}

func (f *fixture) text(args map[string]any) string {
	f.t.Helper()
	res := f.call(args)
	require.False(f.t, res.IsError, res.Text)
	return res.Text
}

func TestWindowsOverTheBinary(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	f := newFixture(t)
	f.write("five.txt", []byte("before\n"+strings.Repeat("日", 1<<21)+"\nafter"))
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/view"), f.root, "--no-state")
	got := c.Call("view", map[string]any{"file_path": "five.txt"})
	lines := strings.Split(got.Text, "\n")
	require.Contains(t, lines[0], "lines 1-3 of 3")
	require.Equal(t, "2\t"+strings.Repeat("日", 2000), lines[2])
	require.Equal(t, "3\tafter", lines[3])
	require.Contains(t, lines[4], "cut after 2000 characters: line 2 (6291457 bytes from byte 7)")
}

// TestMemory: for a large file, with one line or many, memory use is limited to
// the shown part.
func TestMemory(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	f := newFixture(t)
	for name, line := range map[string]string{"lines": strings.Repeat("x", 63) + "\n", "oneline": strings.Repeat("x", 64)} {
		out, err := os.Create(filepath.Join(f.root, name))
		require.NoError(t, err)
		block := []byte(strings.Repeat(line, 1<<14))
		for range 100 {
			_, err := out.Write(block)
			require.NoError(t, err)
		}
		require.NoError(t, out.Close())
	}
	c := mcpkittest.Start(t, mcpkittest.Build(t, "./tools/view"), f.root, "--state", f.kept.Dir)
	got := c.Call("view", map[string]any{"file_path": "lines", "offset": 1_500_000, "limit": 2})
	require.Contains(t, got.Text, "lines 1500000-1500001 of 1638400")
	got = c.Call("view", map[string]any{"file_path": "oneline"})
	require.Contains(t, got.Text, "line 1 of 1")
	require.Contains(t, got.Text, "104857600 bytes")
	got = c.Call("view", map[string]any{"file_path": "lines", "tail": 1_000_000})
	require.Contains(t, got.Text, "\n1638400\t")
	if _, peak, ok := mcpkittest.RSS(t, c.PID()); ok {
		require.Less(t, peak, int64(64<<20))
	}
}

// TestResultsStayWithinTheBudget compares ranges of random files with their
// text, under random budgets.
func TestResultsStayWithinTheBudget(t *testing.T) {
	f := newFixture(t)
	rng := rand.New(rand.NewPCG(5, 5))
	for round := range 60 {
		var want []string
		for range rng.IntN(3000) {
			want = append(want, strings.Repeat("wörd ", rng.IntN(30)))
		}
		f.write("file", []byte(strings.Join(want, "\n")+"\n"))
		if len(want) == 0 {
			want = []string{""}
		}
		tokens := 1500 + rng.IntN(5000)
		offset, limit := 1+rng.IntN(len(want)), 1+rng.IntN(2500)
		res := f.callWith(wire.WithBudget(context.Background(), tokens), map[string]any{"file_path": "file", "offset": offset, "limit": limit})
		require.False(t, res.IsError, res.Text)
		require.LessOrEqual(t, len(res.Text), tokens*4)
		shown := 0
		for line := range strings.SplitSeq(res.Text, "\n") {
			number, text, ok := strings.Cut(line, "\t")
			if !ok {
				continue
			}
			require.Equal(t, fmt.Sprint(offset+shown), strings.TrimLeft(number, " "), "round %d", round)
			require.Equal(t, want[offset+shown-1], text)
			shown++
		}
		var m meta
		require.NoError(t, json.Unmarshal(res.Details, &m))
		require.Equal(t, shown < min(limit, len(want)-offset+1), m.Truncated)
		if m.Truncated {
			require.EqualValues(t, offset+shown, m.NextOffset)
			require.Contains(t, res.Text, fmt.Sprintf("view offset=%d", m.NextOffset))
		}
	}
}

func TestNeverPanics(t *testing.T) {
	f := newFixture(t)
	rng := rand.New(rand.NewPCG(9, 9))
	heads := []string{"", "\x89PNG\r\n\x1a\n", "GIF89a", "\xff\xd8\xff\xe0", "BM", "RIFF\x00\x00\x00\x00WEBP", "%PDF-1.7\n", "II*\x00", "\xff\xfe", "{\"cells\":[{}]}"}
	for range 60 {
		data := []byte(heads[rng.IntN(len(heads))])
		for range rng.IntN(400) {
			data = append(data, byte(rng.Uint32()))
		}
		name := []string{"f", "f.ipynb", "f.go", "f.md"}[rng.IntN(4)]
		f.write(name, data)
		for _, args := range []map[string]any{
			{}, {"hex": true}, {"metadata": true}, {"encoding": textfile.EncodingNames()[rng.IntN(len(textfile.EncodingNames()))]}, {"tail": 2}, {"section": "x"},
		} {
			if strings.HasPrefix(string(data), "%PDF") && len(args) == 0 {
				continue // takes a process; pdf_test.go has them
			}
			args["file_path"] = name
			require.NotEqual(t, toolerr.Internal, f.call(args).Code, "%q %v", data, args)
		}
	}
}

// TestEnormousNumbers: no sum of arguments overflows.
func TestEnormousNumbers(t *testing.T) {
	f := newFixture(t)
	f.write("f", []byte("a\nb\nc\n"))
	const most = int64(math.MaxInt64)
	for _, args := range []map[string]any{
		{"limit": most}, {"tail": most}, {"offset": 2, "limit": most}, {"tail": 2, "limit": most},
		{"hex": true, "limit": most}, {"hex": true, "tail": most}, {"hex": true, "offset": 3, "limit": most},
	} {
		args["file_path"] = "f"
		text := f.text(args)
		if args["hex"] != nil {
			require.Contains(t, text, "-5 of 6")
			continue
		}
		require.Contains(t, text, "-3 of 3", args)
		require.NotContains(t, text, "note:")
	}
	require.Contains(t, f.text(map[string]any{"file_path": "f", "offset": most, "limit": most}), "past the end")
	require.Contains(t, f.text(map[string]any{"file_path": "f", "offset": most, "hex": true}), "no bytes")
}

func TestDescriptionIsShort(t *testing.T) {
	require.LessOrEqual(t, len(description), 1536)
}
