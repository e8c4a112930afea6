//go:build oracle

package clients

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// agent is a coding agent with its way to start it and to talk to its model.
type agent struct {
	name        string
	api         api
	images      bool // images of a result reach the model
	marksErrors bool // the model's API has a mark for a failed call
	quotes      bool // the text of an error is in a JSON string
	searches    bool // run with the agent's own tool search
	whole       int  // bytes of a result that reach the model uncut, at least
	named       func(server, tool string) string
	command     func(t *testing.T, s setup) *exec.Cmd
}

// server is one MCP server in an agent's configuration.
type server struct {
	name    string
	command []string
}

// setup holds the parts of an agent's configuration.
type setup struct {
	home    string // empty
	url     string // of the model
	prompt  string
	search  bool // Claude Code lists no tool and offers ToolSearch: its default
	servers []server
}

// write puts a value as JSON into a file of the home.
func (s setup) write(t *testing.T, name string, value any) (file string) {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	file = filepath.Join(s.home, filepath.FromSlash(name))
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// env is an environment with an empty home. The proxy answers nothing, so that
// an agent that needs the network fails at once on every machine.
func (s setup) env() []string {
	const nowhere = "http://127.0.0.1:9"
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.home, "TMPDIR=" + os.TempDir(), "TERM=dumb", "NO_COLOR=1",
		"HTTP_PROXY=" + nowhere, "HTTPS_PROXY=" + nowhere, "http_proxy=" + nowhere, "https_proxy=" + nowhere,
		"NO_PROXY=127.0.0.1,localhost", "no_proxy=127.0.0.1,localhost",
	}
}

// platform is the end of the names of npm packages with a program.
func platform(t *testing.T) string {
	arch, ok := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	require.True(t, ok && runtime.GOOS == "linux", "the agents are pinned for Linux on x64 and arm64")
	return "linux-" + arch
}

// step is one call that the model makes.
type step struct {
	tool      string
	arguments map[string]any
	text      string // a part of the result
	fails     bool
	image     bool
}

// observed holds the model, the recordings and the steps of a session.
type observed struct {
	model   *model
	servers map[string]recorded
	steps   []exchange
}

// exchange is one step: the result as sent and as received.
type exchange struct {
	step     step
	sent     answer
	received received
}

// deadline is for one session, which takes a few seconds on an idle machine.
const deadline = 8 * time.Minute

// run has the agent make the steps in a directory. serves names the server of a
// tool; it is empty for a tool of the agent itself.
func (a agent) run(t *testing.T, dir string, servers []server, serves func(tool string) string, steps []step) observed {
	t.Helper()
	o := observed{model: &model{api: a.api}, servers: map[string]recorded{}}
	for _, s := range steps {
		name := s.tool
		if server := serves(s.tool); server != "" {
			name = a.named(server, s.tool)
		}
		o.model.script = append(o.model.script, turn{name, s.arguments})
	}
	local := httptest.NewServer(o.model)
	defer local.Close()
	self, err := os.Executable()
	require.NoError(t, err)
	place := setup{home: t.TempDir(), url: local.URL, prompt: "Call the tools.", search: a.searches}
	logs := t.TempDir()
	for _, s := range servers {
		command := append([]string{self, recording, filepath.Join(logs, s.name)}, s.command...)
		place.servers = append(place.servers, server{s.name, command})
	}
	out := execute(t, dir, a.command(t, place))
	require.Empty(t, o.model.problems, out)
	for _, s := range servers {
		waitForServer(t, filepath.Join(logs, s.name))
		o.servers[s.name] = readRecording(t, filepath.Join(logs, s.name))
	}
	require.Len(t, o.model.results, len(steps), "results that the model received; requests that ask no model: %v\n%s", o.model.strays, out)
	calls := map[string]int{}
	for i, s := range steps {
		if serves(s.tool) == "" {
			o.steps = append(o.steps, exchange{step: s, received: o.model.results[i]})
			continue
		}
		answers := o.servers[serves(s.tool)].answers[s.tool]
		require.Greater(t, len(answers), calls[s.tool], "%s was not called\nthe model received: %s\n%s", s.tool, o.model.results[i].text, out)
		o.steps = append(o.steps, exchange{s, answers[calls[s.tool]], o.model.results[i]})
		calls[s.tool]++
	}
	return o
}

// execute runs an agent to its end and returns what it printed. Afterwards no
// process of its group is left.
func execute(t *testing.T, dir string, cmd *exec.Cmd) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	bounded := exec.CommandContext(ctx, cmd.Path, cmd.Args[1:]...)
	bounded.Env, bounded.Dir = cmd.Env, dir
	bounded.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-bounded.Process.Pid, syscall.SIGKILL) }
	bounded.Cancel, bounded.WaitDelay = kill, 10*time.Second
	var out bytes.Buffer
	bounded.Stdout, bounded.Stderr = &out, &out
	err := bounded.Run()
	if bounded.Process != nil {
		kill() //nolint:errcheck // usually the group is gone
	}
	require.NoError(t, err, "%s", out.String())
	return out.String()
}

// check compares the two sides of a call.
func (a agent) check(t *testing.T, x exchange) {
	t.Helper()
	require.Equal(t, x.step.fails, x.sent.IsError, "%s: %v", x.step.tool, x.sent)
	whole, images := 0, 0
	for _, part := range x.sent.Content {
		whole += len(part.Text)
		if part.Type == "image" {
			images++
		}
		want := part.Text
		if a.quotes && x.sent.IsError {
			want = quoted(t, want)
		}
		require.True(t, strings.Contains(x.received.text, want),
			"%s: the model does not receive the text\n--- sent\n%s\n--- received\n%s", x.step.tool, short(part.Text), short(x.received.text))
	}
	require.True(t, strings.Contains(x.sent.text(), x.step.text), "%s: the server's answer lacks %q:\n%s", x.step.tool, x.step.text, short(x.sent.text()))
	if a.marksErrors {
		require.Equal(t, x.step.fails, x.received.isError, "%s: the mark of an error", x.step.tool)
	}
	if a.images {
		require.Equal(t, images, x.received.images, "%s: images", x.step.tool)
	}
	t.Logf("%s: %d bytes, the agent adds %d: %.100q", x.step.tool, whole, len(x.received.text)-whole, x.received.text)
}

// short cuts the middle out of a long text.
func short(text string) string {
	const side = 1000
	if len(text) <= 2*side {
		return text
	}
	return text[:side] + "\n[…]\n" + text[len(text)-side:]
}

// quoted returns text as it is within a JSON string.
func quoted(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	require.NoError(t, encoder.Encode(text))
	return strings.Trim(out.String(), "\"\n")
}

// checkDefinitions compares the tools that servers list with those in the model's
// first request: names, descriptions, parameters and their descriptions.
func (a agent) checkDefinitions(t *testing.T, o observed) {
	t.Helper()
	offered := map[string]definition{}
	for _, d := range o.model.offered {
		offered[d.Name] = d
	}
	listed, arrived := 0, 0
	for name, s := range o.servers {
		require.NotEmpty(t, s.tools, "%s lists no tools", name)
		own := 0
		for key := range offered {
			if strings.HasPrefix(key, a.named(name, "")) {
				own++
			}
		}
		require.GreaterOrEqual(t, own, len(s.tools), "%s: tools of this server that the model is offered", name)
		for _, tool := range s.tools {
			got, ok := offered[a.named(name, tool.Name)]
			require.True(t, ok, "%s is not offered to the model: %v", tool.Name, o.model.offered)
			require.Equal(t, tool.Description, got.Description, "%s: the description", tool.Name)
			require.Subset(t, got.parameters(), tool.parameters(), "%s: the parameters", tool.Name)
			listed, arrived = listed+tool.bytes, arrived+got.bytes
		}
		require.NotEmpty(t, s.instructions, name)
		require.True(t, strings.Contains(string(o.model.first), quoted(t, s.instructions)), "%s: the model does not receive the instructions", name)
	}
	t.Logf("definitions: %d bytes in tools/list, %d in the first request of %d bytes", listed, arrived, len(o.model.first))
}
