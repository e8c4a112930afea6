package chat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Esc leaves the editor of the arguments for the question, and gives a form up.
func TestEscLeavesTheEditor(t *testing.T) {
	b := newBench(t, nil)
	b.prompted()
	b.press("call guarded 1\r")
	b.seen("Allow it?")
	b.press("e")
	b.seen("arguments (Esc goes back): ")
	b.press("xyz\x1b")
	b.seen("Allow it?")
	b.press("y")
	b.seen("✓ guarded text=1")
	b.prompted()
	b.press("call ask 1\r")
	b.seen("colour")
	b.press("re\x1b")
	b.seen(`It said {"action":"cancel"}.`)
	b.quit()
	require.Contains(t, b.calls, `guarded{"text":"1"}`)
}

// Changes of text are shown as diffs. A long one can be approved after all of it was shown.
func TestEditsAreApprovedAsDiffs(t *testing.T) {
	b := newBench(t, nil)
	ask := func(args, want string) {
		t.Helper()
		b.prompted()
		b.mu.Lock()
		b.proposed = args
		b.mu.Unlock()
		b.press("call guarded 1\r")
		shown := b.seen("May guarded be called? a rule asks.\n" + want)
		require.NotContains(t, shown, "old_string")
	}
	ask(`{"file_path":"a.go","old_string":"one\ntwo\nthree","new_string":"one\n2 \nthree","replace_all":true}`,
		"  {\n    \"file_path\": \"a.go\",\n    \"replace_all\": true\n  }\n   one\n  -two\n  +2·\n   three\n\x1b[?2004h\r\x1b[JAllow it?")
	b.press("n")
	ask(`{"path":"a","edits":[{"oldText":"a","newText":"b"},{"oldText":"\u001b[2J","newText":""}]}`,
		"  {\n    \"path\": \"a\"\n  }\n  edit 1 of 2:\n  -a\n  +b\n  edit 2 of 2:\n  -\\u001b[2J\n")
	b.press("n")
	ask(`{"path":"a","content":"x\ny\n"}`, "  {\n    \"path\": \"a\"\n  }\n  +x\n  +y\n\x1b[?2004h\r\x1b[JAllow it?")
	b.press("n")

	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf("line %d", i))
	}
	for text, last := range map[string]string{strings.Join(lines, `\n`) + `\n`: "+line 299", strings.Repeat("x", 40<<10) + "end": "end"} {
		ask(`{"path":"a","content":"`+text+`"}`, "  {\n    \"path\": \"a\"\n  }\n  +")
		require.NotContains(t, b.seen("[v]iew all of it, [n]o, [e]dit: "), last)
		b.press("yav") // neither is taken before it was seen
		b.seen(last)
		b.seen("[y]es")
		b.press("y")
		b.seen("✓ guarded")
	}
	b.quit()
}
