package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// root is the repository's directory; the constants of main.go are relative to it.
const root = "../.."

func measured(t *testing.T) report {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, results))
	require.NoError(t, err)
	return report(text)
}

// The committed pictures are those of the committed recording and report.
func TestPicturesAreUpToDate(t *testing.T) {
	drawn, err := draw(filepath.Join(root, recording), filepath.Join(root, results))
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Join(root, pictures))
	require.NoError(t, err)
	require.Len(t, entries, len(drawn), "files in %s", pictures)
	for name, content := range drawn {
		committed, err := os.ReadFile(filepath.Join(root, pictures, name))
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, committed), "%s is not what its data gives: run make pictures", name)
	}
}

// A picture changes with its data.
func TestPicturesFollowTheirData(t *testing.T) {
	light := themes()[0]
	one, err := drawSession("$ a\nb\n", light)
	require.NoError(t, err)
	other, err := drawSession("$ a\nc\n", light)
	require.NoError(t, err)
	require.NotEqual(t, one, other)

	figures := measured(t)
	one, err = drawChart(figures, light)
	require.NoError(t, err)
	changed := strings.Replace(string(figures), "\n| cp | ", "\n| cp | 1", 1)
	require.NotEqual(t, string(figures), changed)
	other, err = drawChart(report(changed), light)
	require.NoError(t, err)
	require.NotEqual(t, one, other)
}

// Pictures are XML that loads nothing and runs nothing.
func TestPicturesAreSafeXML(t *testing.T) {
	drawn, err := draw(filepath.Join(root, recording), filepath.Join(root, results))
	require.NoError(t, err)
	require.Len(t, drawn, 4)
	for name, content := range drawn {
		decoder := xml.NewDecoder(bytes.NewReader(content))
		elements := 0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
			start, ok := token.(xml.StartElement)
			if !ok {
				continue
			}
			elements++
			require.Contains(t, []string{"svg", "title", "desc", "rect", "circle", "path", "g", "text", "tspan"}, start.Name.Local, name)
			for _, a := range start.Attr {
				require.NotContains(t, a.Value, "url(", name)
				require.NotEqual(t, "href", a.Name.Local, name)
				require.False(t, strings.HasPrefix(a.Name.Local, "on"), name)
			}
		}
		require.Greater(t, elements, 20, name)
	}
}

// Text of the session and of the report is escaped.
func TestTextIsEscaped(t *testing.T) {
	drawn, err := drawSession("$ a <b> & 'c'\n+ <script>\n", themes()[0])
	require.NoError(t, err)
	require.Contains(t, string(drawn), "a &lt;b&gt; &amp;")
	require.NotContains(t, string(drawn), "<script>")
	_, err = drawSession("$ "+strings.Repeat("x", columns), themes()[0])
	require.ErrorContains(t, err, "line 1 has 114 characters, more than 112")
}

// The recording says nothing about the machine that it was made on.
func TestTheRecordingNamesNoPlace(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, recording))
	require.NoError(t, err)
	for _, place := range []string{os.TempDir() + "/", "/root", "/home", "/Users", "/work", "toolroom-session"} {
		require.NotContains(t, string(text), place)
	}
}

// The file tools still print what the recording shows. What bash prints
// depends on the machine and is left out.
func TestTheRecordingIsUpToDate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the session is recorded on Linux")
	}
	text, err := os.ReadFile(filepath.Join(root, recording))
	require.NoError(t, err)
	programs := t.TempDir()
	for _, source := range []string{"host", "tools/grep", "tools/edit"} {
		content, err := os.ReadFile(mcpkittest.Build(t, "./"+source))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(programs, "mcp-"+filepath.Base(source)), content, 0o700)) //nolint:gosec // programs
	}
	printed, err := record(filepath.Join(root, script), programs, func(command string) bool {
		return strings.Contains(command, "call bash")
	})
	require.NoError(t, err)
	require.NotEmpty(t, printed)
	for part := range strings.SplitSeq(printed, "\n\n"+promptMark) {
		require.Contains(t, string(text), strings.TrimRight(part, "\n"), "run make pictures")
	}
}

func TestCells(t *testing.T) {
	r := report("# Measured\n\n## One\n\nMachine: 2 CPUs.\n\nAbout `a`. Text.\n\n| program | median ms | × |\n| --- | ---: | ---: |\n| rg | 76.0 | 1 |\n| **grep, first** | 1234 | 2 |\n\n" +
		"About `b`.\n\n| program | median ms | × |\n| --- | ---: | ---: |\n| rg | 5 | 1 |\n\n## Two\n\nAbout `a`.\n\n| bytes | limit | ours |\n| --- | ---: | ---: |\n| tree | 10 | **7** |\n")
	for name, want := range map[string]float64{"rg": 76, "grep, first": 1234} {
		got, err := r.median("One", "`a`", name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := r.median("One", "`b`", "rg")
	require.NoError(t, err)
	require.Equal(t, 5.0, got)
	got, err = r.cell("Two", "`a`", "tree", "ours")
	require.NoError(t, err)
	require.Equal(t, 7.0, got)
	for _, bad := range [][4]string{{"Three", "`a`", "rg", "median"}, {"One", "`c`", "rg", "median"}, {"One", "`a`", "fd", "median"}, {"One", "`a`", "rg", "mean"}} {
		_, err := r.cell(bad[0], bad[1], bad[2], bad[3])
		require.Error(t, err, bad)
	}
	machine, err := r.machine("One")
	require.NoError(t, err)
	require.Equal(t, "2 CPUs.", machine)
	for v, want := range map[float64]string{76: "76", 17.5: "17.5", 2796: "2,796", 138912: "138,912", 1234567: "1,234,567"} {
		require.Equal(t, want, figure(v))
	}
}
