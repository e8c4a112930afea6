//go:build oracle

package clients

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == recording {
		os.Exit(record(os.Args[2], os.Args[3:]))
	}
	os.Exit(m.Run())
}

// agents are the coding agents that every test runs.
func agents() []agent { return []agent{claude(), codex(), opencode(), gemini()} }

// each runs a test with every agent, as many at a time as there are processors.
func each(t *testing.T, test func(t *testing.T, a agent)) {
	for _, a := range agents() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			test(t, a)
		})
	}
}

// tools are the directories of ./tools: one binary each.
func tools(t *testing.T) (names []string) {
	t.Helper()
	mains, err := filepath.Glob("../../tools/*/main.go")
	require.NoError(t, err)
	require.NotEmpty(t, mains)
	for _, main := range mains {
		names = append(names, filepath.Base(filepath.Dir(main)))
	}
	return names
}

// binaries puts the host and the tools into one directory, in which
// mcp-dispatch_agent and mcp-host look for them.
func binaries(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range append(tools(t), "host") {
		from := "./tools/" + name
		if name == "host" {
			from = "./host"
		}
		require.NoError(t, copyFile(mcpkittest.Build(t, from), filepath.Join(dir, "mcp-"+name)))
	}
	return dir
}

func copyFile(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // read only
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return out.Close()
}

// project is a small tree to work in.
func project(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	var long strings.Builder
	for i := range 120 {
		fmt.Fprintf(&long, "%d: a line with <tags> & \"quotes\", ümläuts, \\n and 日本\n", i)
	}
	for name, text := range map[string]string{
		"notes.txt":   "first line\nsecond line\n",
		"draft.txt":   "first line\nsecond line\n",
		"long.txt":    long.String(),
		"src/main.go": "package main\n\nfunc main() {}\n",
	} {
		writeFile(t, filepath.Join(root, name), text)
	}
	picture := image.NewRGBA(image.Rect(0, 0, 64, 64))
	for i := range 64 {
		picture.Set(i, i, color.RGBA{R: 200, A: 255})
	}
	file, err := os.Create(filepath.Join(root, "picture.png"))
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, picture))
	require.NoError(t, file.Close())
	return root
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

type arguments = map[string]any

// stepsOf lists calls of every tool: results, errors, an image.
func stepsOf(t *testing.T) (steps []step) {
	t.Helper()
	calls := map[string][]step{
		"ls": {{tool: "ls", arguments: arguments{"path": "."}, text: "notes.txt"}},
		"glob": {
			{tool: "glob", arguments: arguments{"pattern": "**/*.go"}, text: "src/main.go"},
			{tool: "glob", arguments: arguments{"pattern": "src/[", "path": "."}, text: "[", fails: true},
		},
		"grep": {
			{tool: "grep", arguments: arguments{"pattern": "func main"}, text: "3: func main() {}"},
			{tool: "grep", arguments: arguments{"pattern": "("}, text: "(", fails: true},
		},
		"view": {
			{tool: "view", arguments: arguments{"file_path": "notes.txt"}, text: "\tsecond line"},
			{tool: "view", arguments: arguments{"file_path": "long.txt"}, text: "119: a line with <tags> & \"quotes\", ümläuts, \\n and 日本"},
			{tool: "view", arguments: arguments{"file_path": "missing.txt"}, text: "missing.txt", fails: true},
			{tool: "view", arguments: arguments{"file_path": "picture.png"}, text: "picture.png", image: true},
		},
		"edit": {
			{tool: "edit", arguments: arguments{"file_path": "draft.txt", "old_string": "second", "new_string": "2nd"}, text: "+2nd line"},
			{tool: "edit", arguments: arguments{"file_path": "draft.txt", "old_string": "third", "new_string": "3rd"}, text: "draft.txt", fails: true},
		},
		"replace": {
			{tool: "replace", arguments: arguments{"file_path": "made/new.txt", "content": "made\n"}, text: "made/new.txt"},
			{tool: "replace", arguments: arguments{"file_path": "../escape", "content": ""}, text: "escape", fails: true},
		},
		"bash": {
			{tool: "bash", arguments: arguments{"command": "cat src/main.go; printf 'err <&>\\n' >&2; exit 3"}, text: "func main() {}\nerr <&>\nexit 3"},
			{tool: "bash", arguments: arguments{"command": "sudo true"}, text: "sudo", fails: true},
			{tool: "bash", arguments: arguments{"command": "sleep 1; echo later", "run_in_background": true}, text: "job"},
			{tool: "bash_job", arguments: arguments{"action": "list"}, text: "sleep 1"},
			{tool: "bash_job", arguments: arguments{"action": "poll", "job_id": "none"}, text: "none", fails: true},
		},
		"dispatch_agent": {
			{tool: "dispatch_agent", arguments: arguments{"prompt": "look at src/main.go"}, text: "func main() {}"},
			{tool: "dispatch_agent", arguments: arguments{"prompt": "go on", "agent_id": "none"}, text: "none", fails: true},
		},
	}
	for _, tool := range tools(t) {
		require.NotEmpty(t, calls[tool], "add calls of the tool %s", tool)
		steps = append(steps, calls[tool]...)
	}
	return steps
}

// hostConfig writes a configuration of the host. The model of dispatch_agent
// views one file and reports the text.
func hostConfig(t *testing.T, more string) (file string) {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "answers.yaml"), `
answers:
  - {when: {tool: view}, text: "The file:\n{{result}}"}
  - {when: {message: "look at (\\S+)"}, calls: [{name: view, args: {file_path: "{{1}}"}}]}
`)
	file = filepath.Join(dir, "toolroom.yaml")
	writeFile(t, file, "models: {default: script, providers: {script: {file: answers.yaml}}}\n"+more)
	return file
}

// host is mcp-host as the only server.
func host(t *testing.T, bin, root, config string) []server {
	t.Helper()
	return []server{{"toolroom", []string{filepath.Join(bin, "mcp-host"), "stdio", "--root", root, "--state", t.TempDir(), "--config", hostConfig(t, config)}}}
}

// TestAlone configures a server for each binary.
func TestAlone(t *testing.T) {
	bin, steps := binaries(t), stepsOf(t)
	each(t, func(t *testing.T, a agent) {
		root, config := project(t), hostConfig(t, "")
		var servers []server
		for _, tool := range tools(t) {
			command := []string{filepath.Join(bin, "mcp-"+tool), "--root", root, "--state", t.TempDir()}
			if tool == "dispatch_agent" {
				command = append(command, "--config", config)
			}
			servers = append(servers, server{tool, command})
		}
		a.test(t, root, servers, func(tool string) string { return strings.TrimSuffix(tool, "_job") }, steps)
	})
}

// TestHost configures mcp-host as the only server. Its own answers are read, too:
// a call that waits for approval, and a declared tool.
func TestHost(t *testing.T) {
	bin := binaries(t)
	steps := append(stepsOf(t),
		step{tool: "bash", arguments: arguments{"command": "git push origin"}, text: "approv", fails: true},
		step{tool: "weather", arguments: arguments{"city": "Zürich"}, text: "celsius"},
		step{tool: "forecast", arguments: arguments{"city": "Zürich"}, text: "sunny <&>"})
	each(t, func(t *testing.T, a agent) {
		root := project(t)
		a.test(t, root, host(t, bin, root, `
approval: {ask_client: false}
policy: {rules: [{tool: bash, args: {command: "git push*"}, do: ask}]}
tools:
  weather:
    description: The weather of a city.
    input_schema: {type: object, properties: {city: {type: string, description: its name}}, required: [city]}
    output_schema: {type: object, properties: {celsius: {type: number}}}
    mode: mock
    mock_result: {celsius: 21}
  forecast:
    description: The forecast for a city.
    input_schema: {type: object, properties: {city: {type: string, description: its name}}, required: [city]}
    mode: mock
    mock_result: "sunny <&>"
`), func(string) string { return "toolroom" }, steps)
	})
}

// TestHostSearch configures mcp-host so that it lists few tools and the model
// finds the others with search_tools.
func TestHostSearch(t *testing.T) {
	bin := binaries(t)
	steps := []step{
		{tool: "search_tools", arguments: arguments{"query": "read a file"}, text: "view"},
		{tool: "describe_tool", arguments: arguments{"name": "view"}, text: "file_path"},
		{tool: "call_tool", arguments: arguments{"name": "view", "arguments": arguments{"file_path": "notes.txt"}}, text: "\tsecond line"},
		{tool: "call_tool", arguments: arguments{"name": "view", "arguments": arguments{"file_path": "missing.txt"}}, text: "missing.txt", fails: true},
		{tool: "call_tool", arguments: arguments{"name": "no_such_tool", "arguments": arguments{}}, text: "no_such_tool", fails: true},
	}
	each(t, func(t *testing.T, a agent) {
		root := project(t)
		a.test(t, root, host(t, bin, root, "context: {max_tools: 4}\n"), func(string) string { return "toolroom" }, steps)
	})
}

// test runs a session and checks all that it shows.
func (a agent) test(t *testing.T, root string, servers []server, serves func(string) string, steps []step) {
	o := a.run(t, root, servers, serves, steps)
	t.Run("definitions", func(t *testing.T) { a.checkDefinitions(t, o) })
	for i, x := range o.steps {
		t.Run(fmt.Sprintf("%d %s", i, x.step.tool), func(t *testing.T) { a.check(t, x) })
	}
}

// TestLongResults finds how much of a long result reaches the model: all up to the
// agent's own bound, and the header beyond it.
func TestLongResults(t *testing.T) {
	bin := binaries(t)
	steps := []step{{tool: "bash", arguments: arguments{"command": "seq -f 'line %07g of the output of a command' 2000"}, text: "line 0002000"}}
	lengths := []int{100, 200, 400, 700, 1200, 1500}
	for _, lines := range lengths {
		steps = append(steps, step{
			tool: "view", arguments: arguments{"file_path": fmt.Sprintf("%d.txt", lines)}, text: fmt.Sprintf("%d.txt  lines 1-%d of %d", lines, lines, lines),
		})
	}
	each(t, func(t *testing.T, a agent) {
		root := project(t)
		for _, lines := range lengths {
			writeFile(t, filepath.Join(root, fmt.Sprintf("%d.txt", lines)), strings.Repeat("A line of text as long as most lines of code\n", lines))
		}
		o := a.run(t, root, host(t, bin, root, ""), func(string) string { return "toolroom" }, steps)
		for _, x := range o.steps {
			sent := x.sent.text()
			t.Logf("%s: %d bytes, the model receives %d", x.step.tool, len(sent), len(x.received.text))
			if len(sent) <= a.whole {
				a.check(t, x)
				continue
			}
			header, _, _ := strings.Cut(sent, "\n")
			require.True(t, strings.Contains(x.received.text, header), short(x.received.text))
		}
	})
}
