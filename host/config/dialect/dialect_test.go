package dialect_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/config/dialect"
	"go.yaml.in/yaml/v3"
)

// marker is in every credential of the fixtures that is written out.
const marker = "SEKRIT"

func fixtures(t testing.TB) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/fixtures/*")
	require.NoError(t, err)
	var files []string
	for _, file := range all {
		if !strings.HasSuffix(file, ".want.yaml") && !strings.HasSuffix(file, ".md") {
			files = append(files, file)
		}
	}
	require.GreaterOrEqual(t, len(files), 15)
	return files
}

// canonical is a document in toolroom's own words, with its problems.
func canonical(t *testing.T, d *dialect.Document) string {
	t.Helper()
	servers := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range d.Servers {
		name := &yaml.Node{}
		name.SetString(s.Name)
		servers.Content = append(servers.Content, name, s.Encode(d.Inputs, true))
	}
	var b strings.Builder
	for _, p := range d.Problems {
		p.File = filepath.Base(p.File)
		fmt.Fprintf(&b, "# %s\n", p)
	}
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	require.NoError(t, e.Encode(map[string]any{"servers": servers}))
	return b.String()
}

func TestDialects(t *testing.T) {
	for _, file := range fixtures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			d := dialect.Parse(file, text, dialect.Options{})
			require.NoError(t, d.Problems.Err())
			got := canonical(t, d)
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".want.yaml"
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(golden, []byte(got), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			// What it means is the same when it is read again.
			again := dialect.Parse("toolroom.yaml", []byte(got), dialect.Options{})
			require.Empty(t, again.Problems)
			_, rest, _ := strings.Cut(got, "servers:")
			_, back, _ := strings.Cut(canonical(t, again), "servers:")
			require.Equal(t, rest, back)

			// Nothing of it shows a credential.
			for _, s := range d.Servers {
				hidden, err := yaml.Marshal(s.Encode(d.Inputs, false))
				require.NoError(t, err)
				require.NotContains(t, string(hidden)+fmt.Sprintf("%v %+v %#v %s %+v %q", s, s, s, s.Where(), s.View(), s), marker)
			}
			require.NotContains(t, fmt.Sprintf("%+v", d), marker)
		})
	}
}
