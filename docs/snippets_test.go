package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// pretended are programs that snippets name and that no test needs to start.
var pretended = []string{"npx", "uvx", "docker", "gcloud", "my-server"}

// TestConfigurations has `mcp-host config check` read each block of YAML,
// JSON and TOML that is a configuration, of toolroom's or a client's.
func TestConfigurations(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	bin := filepath.Join(m.home, "toolroom", "bin")
	for _, name := range pretended {
		m.install(bin, name, "./tools/ls")
	}
	require.NoError(t, os.MkdirAll(filepath.Join(m.home, "tools"), 0o755)) //nolint:gosec // a test's
	count := 0
	for _, page := range pages(t) {
		for _, b := range blocks(t, page) {
			if b.language != "yaml" && b.language != "toml" && b.language != "json" || strings.HasPrefix(b.directive, "file ") {
				continue
			}
			count++
			t.Run(fmt.Sprintf("%s:%d", page, b.line), func(t *testing.T) {
				if b.directive == "syntax" { // not a configuration that the host reads
					require.NoError(t, parse(b), b.text)
					return
				}
				dir := filepath.Join(m.home, "checked", fmt.Sprint(count))
				require.NoError(t, os.MkdirAll(dir, 0o755)) //nolint:gosec // a test's
				name := filepath.Join(dir, "toolroom."+b.language)
				text := filled(b.text)
				for _, missing := range variables.FindAllStringSubmatch(text, -1) {
					_, err := m.run("export " + missing[1] + missing[2] + "=value")
					require.NoError(t, err)
				}
				require.NoError(t, os.WriteFile(name, []byte(strings.ReplaceAll(text, home, m.home)), 0o600))
				if strings.HasPrefix(text, "apiVersion:") {
					out, err := m.run("cd " + dir + " && mcp-host tools register " + name)
					require.NoError(t, err, "%s", out)
					return
				}
				out, err := m.run("cd " + dir + " && mcp-host config check " + name)
				require.NoError(t, err, "%s\n%s", text, out)
				require.NotContains(t, out, "unknown")
			})
		}
	}
	require.Greater(t, count, 20)
}

// variables are those of the environment that a configuration names.
var variables = regexp.MustCompile(`\$\{(?:env:)?([A-Z_]+)\}|_env(?:_var)?(?: =|:) "?([A-Z_]+)`)

// parse parses a block in its language.
func parse(b block) error {
	var value any
	switch b.language {
	case "json":
		return json.Unmarshal([]byte(b.text), &value)
	case "toml":
		return toml.Unmarshal([]byte(b.text), &value)
	}
	return yaml.Unmarshal([]byte(b.text), &value)
}

// filled replaces the placeholders of snippets.
func filled(text string) string {
	return strings.NewReplacer("BIN", home+"/toolroom/bin", "PROJECT", home+"/project", "${workspaceFolder}", home+"/project",
		`C:\\toolroom\\bin\\mcp-host.exe`, home+"/toolroom/bin/mcp-host", `C:\\toolroom\\bin\\mcp-view.exe`, home+"/toolroom/bin/mcp-view",
		`C:\\src\\project`, home+"/project").Replace(text)
}

// A started is what a client's snippet starts.
type started struct {
	Command any      `json:"command" toml:"command"` // text, or a list as in opencode
	Args    []string `json:"args" toml:"args"`
}

// Each client's snippet that starts a program starts a server that reads a
// file of the project.
func TestClientsStart(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	ran := 0
	for _, b := range blocks(t, "clients.md") {
		decode := map[string]func([]byte, any) error{"json": json.Unmarshal, "toml": toml.Unmarshal}[b.language]
		if decode == nil || b.directive == "syntax" || strings.Contains(b.text, `C:\`) {
			continue
		}
		var client map[string]map[string]started
		require.NoError(t, decode([]byte(strings.ReplaceAll(filled(b.text), home, m.home)), &client), b.text)
		for _, servers := range client {
			for name, s := range servers {
				line := s.Args
				switch command := s.Command.(type) {
				case string:
					line = append([]string{command}, line...)
				case []any:
					for _, word := range command {
						line = append(line, word.(string))
					}
				default:
					continue // an address
				}
				server := mcpkittest.StartWith(t, line[0], mcpkittest.Options{Args: line[1:], Dir: os.TempDir()})
				require.Contains(t, server.Call("view", map[string]any{"file_path": "go.mod"}).Text, "example.com/shop", name)
				require.Zero(t, server.Close())
				ran++
			}
		}
	}
	require.Greater(t, ran, 6)
}

// agents.md shows the last line of an agent's output as mcp-host prints it.
func TestLastLineOfAnAgent(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	for _, b := range blocks(t, "tools/dispatch_agent.md") {
		if name, ok := strings.CutPrefix(b.directive, "file "); ok {
			m.write(name, b.text)
		}
	}
	printed, err := m.run("mcp-host --config agents.yaml agent 'Where are prices added up?'")
	require.NoError(t, err, printed)
	form := regexp.MustCompile(`(?m)^agent \S+ · goal reached · \d+ turns · [\d.]+k? in / [\d.]+k? out · [\dhms.]+( [a-z]+×\d+| · [a-z]+×\d+)+$`)
	require.Regexp(t, form, printed)
	shown := 0
	for _, b := range blocks(t, "agents.md") {
		if b.language == "text" {
			shown++
			require.Regexp(t, form, b.text)
		}
	}
	require.Equal(t, 1, shown)
}
