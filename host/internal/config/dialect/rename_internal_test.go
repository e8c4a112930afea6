package dialect

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// oldNames are renames as a later version could have them: the names of today are the old
// ones, or the new ones.
func oldNames() []rename {
	return []rename{
		{path: []string{"share_processes"}, name: "share_servers", since: "v0.9.0"},
		{path: []string{"servers", "*", "start_limit"}, name: "start_timeout", since: "v0.9.0"},
		{path: []string{"policy", "rules", "*", "action"}, name: "do", since: "v0.9.0"},
	}
}

const oldYAML = "\ufeff# share_processes: a comment\r\n" +
	"share_processes:   true # stays\r\n" +
	"servers:\r\n" +
	"  start_limit: &a {start_limit: 5s, command: \"start_limit: x\"}\r\n" +
	"  y: {command: y, \"start_limit\": 6s}\r\n" +
	"policy:\n  rules:\n    - {tool: action, action: deny}\n    - action:  allow\n      tool: '*'\n"

func TestOldNamesAreRead(t *testing.T) {
	d := Parse("toolroom.yaml", []byte(oldYAML), Options{renames: oldNames()})
	require.NoError(t, d.Problems.Err())
	var warnings []string
	for _, p := range d.Problems {
		warnings = append(warnings, p.String())
	}
	require.Equal(t, []string{
		"toolroom.yaml:2: share_processes is called share_servers since version v0.9.0; mcp-host config migrate changes the file",
		"toolroom.yaml:4: servers.start_limit.start_limit is called start_timeout since version v0.9.0; mcp-host config migrate changes the file",
		"toolroom.yaml:5: servers.y.start_limit is called start_timeout since version v0.9.0; mcp-host config migrate changes the file",
		"toolroom.yaml:8: policy.rules.action is called do since version v0.9.0; mcp-host config migrate changes the file",
		"toolroom.yaml:9: policy.rules.action is called do since version v0.9.0; mcp-host config migrate changes the file",
	}, warnings)
	require.True(t, *Apply(d.Settings).ShareServers)
	require.Equal(t, "5s", d.Servers[0].StartTimeout.String())

	// Without the renames they are unknown, so the test above is not true by itself.
	require.Error(t, Parse("toolroom.yaml", []byte(oldYAML), Options{}).Problems.Err())
	// Another product's file has no names of older versions of toolroom.
	other := Parse("mcp.json", []byte(`{"mcpServers": {"x": {"command": "x"}}, "share_processes": true}`), Options{renames: oldNames()})
	require.Empty(t, other.Problems)
}

func TestMigrateKeepsAllOtherBytes(t *testing.T) {
	for _, c := range []struct{ file, before, after string }{
		{"toolroom.yaml", oldYAML, "\ufeff# share_processes: a comment\r\n" +
			"share_servers:   true # stays\r\n" +
			"servers:\r\n" +
			"  start_limit: &a {start_timeout: 5s, command: \"start_limit: x\"}\r\n" +
			"  y: {command: y, \"start_timeout\": 6s}\r\n" +
			"policy:\n  rules:\n    - {tool: action, do: deny}\n    - do:  allow\n      tool: '*'\n"},
		{"toolroom.json", "{ // share_processes\n\t\"share_processes\" : true, /* \"share_processes\" */\n}\n", "{ // share_processes\n\t\"share_servers\" : true, /* \"share_processes\" */\n}\n"},
		{"toolroom.toml", "# share_processes\nshare_processes = true # yes\n[servers.x]\ncommand = \"x\"\nstart_limit = \"5s\"\n", "# share_processes\nshare_servers = true # yes\n[servers.x]\ncommand = \"x\"\nstart_timeout = \"5s\"\n"},
		{"toolroom.yaml", "share_servers: true\n", "share_servers: true\n"},
		{"toolroom.yaml", "base: &b\n", ""},
	} {
		after, changes, err := migrate(c.file, []byte(c.before), oldNames())
		if c.after == "" {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err, c.file)
		require.Equal(t, c.after, string(after))
		require.Equal(t, c.before == c.after, len(changes) == 0)
		again, changes, err := migrate(c.file, after, oldNames())
		require.NoError(t, err)
		require.Equal(t, c.after, string(again))
		require.Empty(t, changes)
	}
}

func TestMigrateRefuses(t *testing.T) {
	_, _, err := migrate("toolroom.yaml", []byte("share_processes: true\nshare_servers: false\n"), oldNames())
	require.ErrorContains(t, err, "toolroom.yaml:1: share_processes is the old name of share_servers, which is also there: delete one")
	_, _, err = migrate("toolroom.yaml", []byte("share_processes: true\nsevers: {}\n"), oldNames())
	require.ErrorContains(t, err, "did you mean servers?")
	_, _, err = migrate("toolroom.yaml", []byte("\"share\\u005fprocesses\": true\n"), oldNames())
	require.ErrorContains(t, err, "toolroom.yaml:1: share_processes cannot be changed here: write share_servers instead by hand")
	_, _, err = migrate("mcp.json", []byte("{}"), oldNames())
	require.ErrorContains(t, err, "is not toolroom's own configuration")
}

// A new name must be known, and an old one must not be.
func TestRenamedKeysAreReal(t *testing.T) {
	schema := string(Schema())
	for _, one := range renamedKeys() {
		require.Contains(t, schema, `"`+one.name+`"`)
		require.Regexp(t, `^v\d+\.\d+\.0$`, one.since)
		require.NotContains(t, strings.Join(one.path, "."), "..")
	}
}
