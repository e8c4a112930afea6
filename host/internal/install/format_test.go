package install

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var formats = map[string]format{"json": jsonFormat, "toml": tomlFormat, "yaml": yamlFormat}

var memberOf = map[string]string{"json": "mcpServers", "toml": "mcp_servers", "yaml": "extensions"}

// Each file of testdata has the text before, after an entry is set, and after it
// is removed ("same": as before).
func TestEntriesAreSetAndRemoved(t *testing.T) {
	for _, kind := range []string{"json", "toml", "yaml"} {
		files, err := filepath.Glob(filepath.Join("testdata", kind, "*"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			t.Run(kind+"/"+filepath.Base(file), func(t *testing.T) {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				parts := strings.Split(string(text), "=====\n")
				require.Len(t, parts, 3)
				for _, end := range []string{"\n", "\r\n"} {
					lines := func(s string) string { return strings.ReplaceAll(s, "\n", end) }
					before, after, removed := lines(parts[0]), lines(parts[1]), lines(parts[2])
					if parts[2] == "same\n" {
						removed = before
					}
					if end == "\r\n" && !strings.Contains(before, end) {
						continue
					}
					got, err := formats[kind].setChecked([]byte(before), memberOf[kind], "toolroom", commandEntry(Server{Command: "/bin/mcp-host", Args: []string{"stdio"}}))
					require.NoError(t, err)
					require.Equal(t, after, string(got))
					got, err = formats[kind].removeChecked(got, memberOf[kind], "toolroom")
					require.NoError(t, err)
					require.Equal(t, removed, string(got))
				}
			})
		}
	}
}

func TestInvalidTextsAreRefused(t *testing.T) {
	for _, c := range []struct{ kind, text, err string }{
		{"json", "{", "line 1: the name of a member is missing"},
		{"json", "{\n\"a\": 1 \"b\": 2}", `line 2: a comma or '}' is missing`},
		{"json", "[]", "the file is not a JSON object"},
		{"json", `{"mcpServers": 1}`, `"mcpServers" is not an object`},
		{"json", `{"mcpServers": {}, "mcpServers": {}}`, `"mcpServers" appears twice`},
		{"json", `{"a": nul}`, "is not a JSON value"},
		{"json", `{"a": 1} x`, "text after the value"},
		{"json", `{"a": "` + "\n" + `"}`, "a string does not end on its line"},
		{"json", `/* {}`, "a comment does not end"},
		{"json", strings.Repeat("[", 5000), "nested too deeply"},
		{"toml", "mcp_servers = 1", `"mcp_servers" is not a table`},
		{"toml", "a = ", ""},
		{"toml", "mcp_servers = {x = {command = 'x'}}", ""},
		{"yaml", "- a", ""},
		{"yaml", "extensions: !!null\n", "not a mapping"},
		{"yaml", "extensions: 1", "not a mapping"},
		{"yaml", "extensions: {a: {cmd: x}}", "written in braces"},
		{"yaml", "{a: 1}", "written in braces"},
		{"yaml", "a: 1\n---\nb: 1\n", "several documents"},
	} {
		_, err := formats[c.kind].setChecked([]byte(c.text), memberOf[c.kind], "toolroom", commandEntry(Server{Command: "c"}))
		require.ErrorContains(t, err, c.err, c.text)
	}
}

// nullMember matches the null that an entry replaces.
var nullMember = regexp.MustCompile(`(?m)("?(?:extensions|mcpServers)"?\s*:)[ \t]*(?:null|Null|NULL|~)`)

func fuzzFormat(f *testing.F, kind string) {
	files, err := filepath.Glob(filepath.Join("testdata", kind, "*"))
	require.NoError(f, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(bytes.Split(text, []byte("=====\n"))[0])
	}
	format, member := formats[kind], memberOf[kind]
	entry := commandEntry(Server{Command: `/a "b"/mcp-host`, Args: []string{"stdio", "ü\\n"}})
	f.Fuzz(func(t *testing.T, text []byte) {
		if bytes.Count(text, []byte("\r")) != bytes.Count(text, []byte("\r\n")) {
			return // a carriage return alone becomes the end of a line
		}
		had, err := format.entries(text, member)
		if err != nil {
			return
		}
		with, err := format.setChecked(text, member, "toolroom", entry)
		if err != nil {
			return
		}
		again, err := format.setChecked(with, member, "toolroom", entry)
		require.NoError(t, err, "%q", with)
		require.Equal(t, string(with), string(again), "a second time changes nothing")
		without, err := format.removeChecked(with, member, "toolroom")
		require.NoError(t, err, "%q", with)
		if _, present := had["toolroom"]; !present {
			text := nullMember.ReplaceAll(text, []byte("$1"))
			if kind != "yaml" || !bytes.Contains(text, []byte("{}")) { // an empty mapping in braces loses them
				require.True(t, subsequence(significant(text), with), "%q: bytes of %q are lost", with, text)
			}
			require.True(t, subsequence(significant(text), without), "%q: bytes of %q are lost", without, text)
		}
	})
}

// subsequence reports whether all bytes of a are in b in the same order.
func subsequence(a, b []byte) bool {
	for _, c := range b {
		if len(a) > 0 && a[0] == c {
			a = a[1:]
		}
	}
	return len(a) == 0
}

// significant returns a text without white space and commas, and without the end
// of a YAML mapping in braces.
func significant(text []byte) []byte {
	return slices.DeleteFunc(bytes.Clone(text), func(c byte) bool { return strings.IndexByte(" \t\r\n,{}", c) >= 0 })
}

func FuzzJSON(f *testing.F) { fuzzFormat(f, "json") }
func FuzzTOML(f *testing.F) { fuzzFormat(f, "toml") }
func FuzzYAML(f *testing.F) { fuzzFormat(f, "yaml") }
