package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"go.yaml.in/yaml/v3"
)

// FuzzParse reads anything as every format. Nothing breaks the reader; what
// it says of it is bounded and shows no value; and what is understood means
// the same when it is written in toolroom's own words and read again.
func FuzzParse(f *testing.F) {
	kinds := []string{"x.json", "toolroom.yaml", "x.yml", "config.toml", "x", "list"}
	for _, file := range fixtures(f) {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		for i, kind := range kinds {
			if filepath.Ext(kind) == filepath.Ext(file) || filepath.Ext(kind) == "" {
				f.Add(uint8(i), string(text))
			}
		}
	}
	f.Add(uint8(5), `A="SEKRIT 1" 'b c' d\ e;C:\f "SEKRIT`)
	f.Add(uint8(1), "servers: {x: {command: '${A:-${B}}', env: {K: $SEKRIT}, url: 'http://SEKRIT@h/?k=SEKRIT'}}")
	f.Fuzz(func(t *testing.T, kind uint8, text string) {
		name := kinds[int(kind)%len(kinds)]
		var d *dialect.Document
		if name == "list" {
			d = dialect.ParseList(text, nil)
		} else {
			d = dialect.Parse(name, []byte(text), dialect.Options{Project: "/p"})
		}
		said := d.Problems.Error()
		require.Less(t, len(said), 20_000)
		if name == "list" { // a name is made of the command there
			d.Servers = nil
		}
		for _, s := range d.Servers {
			expanded, problems := s.Expand(variables("A", "1"))
			said += problems.Error() + fmt.Sprintf("%v%+v%#v", s, expanded, s)
			_ = s.View() // its arguments are hidden by their shape; TestArgs says which
		}
		// A name may be shown, wherever it comes from; a value never.
		if strings.Contains(text, marker) && !namesMarker(text) {
			require.NotContains(t, said, marker)
		}
		if d.Problems.Err() != nil || name == "list" {
			return
		}
		own, err := yaml.Marshal(map[string]any{"servers": encoded(d, true)})
		require.NoError(t, err)
		again := dialect.Parse("toolroom.yaml", own, dialect.Options{})
		require.NoError(t, again.Problems.Err(), string(own))
		back, err := yaml.Marshal(map[string]any{"servers": encoded(again, true)})
		require.NoError(t, err)
		require.Equal(t, string(own), string(back))
	})
}

func encoded(d *dialect.Document, reveal bool) map[string]*yaml.Node {
	all := map[string]*yaml.Node{}
	for _, s := range d.Servers {
		all[s.Name] = s.Encode(d.Inputs, reveal)
	}
	return all
}

// namesMarker reports whether the marker may stand for a name: of a server, a
// field or a variable, or of an input, and so may be shown.
func namesMarker(text string) bool {
	for rest := text; ; {
		at := strings.Index(rest, marker)
		if at < 0 {
			return false
		}
		before, after := rest[:at], rest[at:]
		// A value in the fixtures follows a quote and a name that says so.
		if !strings.HasSuffix(before, `: "`) && !strings.HasSuffix(before, `= "`) && !strings.HasSuffix(before, "Bearer ") {
			return true
		}
		if end := strings.IndexAny(after, "\"\n"); end < 0 || strings.HasPrefix(strings.TrimLeft(after[end+1:], " \t\r\n"), ":") || strings.HasPrefix(strings.TrimLeft(after[end+1:], " \t\r\n"), "=") {
			return true
		}
		rest = after[len(marker):]
	}
}
