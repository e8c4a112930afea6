package match_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/textdiff"
	"github.com/toolroom-mcp/toolroom/tools/edit/match"
	"github.com/toolroom-mcp/toolroom/tools/edit/splice"
)

// large returns about mb MB of distinct lines.
func large(mb int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < mb<<20; i++ {
		fmt.Fprintf(&b, "\tentry %d of the list has the value %d and a text\n", i, i*7919%1000)
	}
	return b.Bytes()
}

// BenchmarkOneLine edits one line of 100 MB, without writing, compared to a
// copy of the same bytes in memory.
func BenchmarkOneLine(b *testing.B) {
	raw := large(100)
	for name, e := range map[string]match.Edit{
		"exact":       {Old: "entry 1500000 of the list has", New: "entry 1500000 had"},
		"trailing":    {Old: "\tentry 1500000 of the list has the value 0 and a text  \n\tentry 1500001", New: "x\n\ty"},
		"indentation": {Old: "  entry 1500000 of the list has the value 0 and a text\n  entry 1500001", New: "  x\n  y"},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				f, err := splice.Open(b.Context(), raw)
				require.NoError(b, err)
				plan, err := match.Find(b.Context(), f, []match.Edit{e}, match.Options{})
				require.NoError(b, err)
				result, err := f.Apply(b.Context(), plan.Changes)
				require.NoError(b, err)
				_, err = result.WriteTo(io.Discard)
				require.NoError(b, err)
				require.NotEmpty(b, result.Diff(textdiff.Options{MaxLines: 60}).Text)
			}
		})
	}
	b.Run("copy", func(b *testing.B) {
		b.SetBytes(int64(len(raw)))
		for b.Loop() {
			_ = bytes.Clone(raw)
		}
	})
}

// BenchmarkRefused measures an edit that is not found in 100 MB.
func BenchmarkRefused(b *testing.B) {
	raw := large(100)
	f, err := splice.Open(b.Context(), raw)
	require.NoError(b, err)
	for name, old := range map[string]string{
		"stale":  "\tentry 1500000 of the list has the value 1\n\tentry 1500001 of the list\n\tentry 1500002",
		"absent": "func main() {\n\tos.Exit(run())\n}",
		"common": strings.Repeat("\tentry of the list has the value and a text\n", 50),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				_, err := match.Find(b.Context(), f, []match.Edit{{Old: old, New: "x"}}, match.Options{})
				require.Error(b, err)
			}
		})
	}
}

// BenchmarkAdversarial measures files and texts designed to be slow: the time
// per byte should be close to that of others.
func BenchmarkAdversarial(b *testing.B) {
	const size = 16 << 20
	period := strings.Repeat("x", 31) + "\n"
	for name, c := range map[string]struct{ file, old string }{
		"one letter":        {strings.Repeat("a", size), strings.Repeat("a", 1<<20) + "b"},
		"one letter, there": {strings.Repeat("a", size), strings.Repeat("a", 1<<20)},
		"braces":            {strings.Repeat("}\n", size/2), strings.Repeat("}\n", 1<<16) + "{"},
		"braces, blanks":    {strings.Repeat("}\n", size/2), strings.Repeat("}  \n", 1<<16) + "{"},
		"indented":          {strings.Repeat("\t}\n", size/3), strings.Repeat("    }\n", 1<<14) + "  }"},
		"indented, nearly":  {strings.Repeat("\t\tif x {\n\t\t\ty()\n\t\t}\n", size/20), "  if x {\n    y()\n  } // not"},
		"period":            {strings.Repeat(period, size/32), strings.Repeat(period, 1<<15) + "y"},
		"period, crlf":      {strings.Repeat(period, size/32), strings.Repeat(strings.ReplaceAll(period, "\n", "\r\n"), 1<<15) + "y"},
		"quotes":            {strings.Repeat("“a”", size/7), strings.Repeat(`"a"`, 1<<16) + "b"},
		"quotes, there":     {strings.Repeat("“a”", size/7), strings.Repeat(`"a"`, 1<<16)},
		"words":             {strings.Repeat("alpha beta gamma\n", size/17), strings.Repeat("gamma beta alpha\n", 300)},
		"long line":         {strings.Repeat("word and word ", size/14), "word and words"},
	} {
		b.Run(name, func(b *testing.B) {
			f, err := splice.Open(b.Context(), []byte(c.file))
			require.NoError(b, err)
			b.SetBytes(int64(len(c.file)))
			for b.Loop() {
				_, err := match.Find(b.Context(), f, []match.Edit{{Old: c.old, New: "new text"}}, match.Options{})
				require.Error(b, err)
			}
		})
	}
	b.Run("replace all", func(b *testing.B) {
		f, err := splice.Open(b.Context(), []byte(strings.Repeat("a,b\n", size/16)))
		require.NoError(b, err)
		b.SetBytes(int64(len(f.Raw)))
		b.ReportAllocs()
		for b.Loop() {
			plan, err := match.Find(b.Context(), f, []match.Edit{{Old: ",", New: ";", All: true}}, match.Options{})
			require.NoError(b, err)
			_, err = f.Apply(b.Context(), plan.Changes)
			require.NoError(b, err)
		}
	})
}
