package docs_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	"mvdan.cc/sh/v3/syntax"
)

// documents returns pages and the README of the repository, whose blocks TestCommands does
// not run.
func documents(t *testing.T) []string { return append(pages(t), "../README.md") }

// spans returns the inline code of a page outside of its blocks.
func spans(t *testing.T, page string) (found []string) {
	t.Helper()
	text := fenced.ReplaceAllString(read(t, page), "")
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		found = append(found, strings.Join(strings.Fields(m[1]), " "))
	}
	return found
}

// otherFields are fields that pages name and that configuration.md does not list: of
// declared tools, scripted answers, MCP and tools, and of PromptKit.
var otherFields = []string{"on_error", "raw", "recording", "run_in_background", "runtime", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}

// A setting that a page names with a value, such as `tool_pins: enforce`, is in
// configuration.md, with that value if only some are allowed.
func TestNamedSettingsExist(t *testing.T) {
	values := map[string][]string{} // by the last part of the key and by the whole key
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]+) \\|").FindAllStringSubmatch(read(t, "configuration.md"), -1) {
		var allowed []string // nil: any
		if words := strings.Split(row[2], ", "); !slices.ContainsFunc(words, func(w string) bool { return !strings.HasPrefix(w, "`") && w != "map" }) {
			for _, w := range words {
				allowed = append(allowed, strings.Trim(w, "`"))
			}
		}
		last := row[1][strings.LastIndex(row[1], ".")+1:]
		values[last], values[row[1]] = append(values[last], allowed...), allowed
	}
	count := 0
	for _, page := range documents(t) {
		for _, span := range spans(t, page) {
			m := regexp.MustCompile(`^([a-zA-Z_]+): (\S.*)$`).FindStringSubmatch(span)
			if m == nil || strings.ToUpper(m[1][:1]) == m[1][:1] || slices.Contains(otherFields, m[1]) {
				continue // a header of HTTP, or another program's field
			}
			count++
			allowed, ok := values[m[1]]
			require.True(t, ok, "%s: %s: configuration.md has no such key", page, span)
			var below map[string]map[string]any
			if yaml.Unmarshal([]byte(span), &below) == nil {
				for name := range below[m[1]] {
					require.Contains(t, values, m[1]+"."+name, "%s: %s", page, span)
				}
			} else if len(allowed) > 0 {
				require.Contains(t, allowed, m[2], "%s: %s", page, span)
			}
		}
	}
	require.Greater(t, count, 15)
}

// JSON in the text of a page can be parsed; … in it represents any value.
func TestNamedJSONIsJSON(t *testing.T) {
	member := regexp.MustCompile(`([\[{,:] ?)…`)
	count := 0
	for _, page := range documents(t) {
		for _, span := range spans(t, page) {
			switch {
			case strings.HasPrefix(span, `"`) && strings.Contains(span, `": `):
				span = "{" + span + "}"
			case !strings.HasPrefix(span, `{"`):
				continue
			}
			count++
			text := strings.NewReplacer("{…}", "{}", "[…]", "[]", `:N`, ":0").Replace(span)
			text = member.ReplaceAllString(text, "${1}0")
			require.True(t, json.Valid([]byte(text)), "%s: %s", page, span)
		}
	}
	require.Greater(t, count, 10)
}

// Requests that pages name are in the description of the API.
func TestNamedRequestsExist(t *testing.T) {
	printed := serve(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, strings.TrimSuffix(printed["url"], "/mcp")+"/openapi.json", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+printed["token"])
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	var api struct{ Paths map[string]map[string]any }
	require.NoError(t, json.Unmarshal(text, &api))
	parameter := regexp.MustCompile(`\{[a-z_]+\}|\b(?:ID|NAME)\b`)
	known := map[string]map[string]any{}
	for path, methods := range api.Paths {
		known[parameter.ReplaceAllString(path, "*")] = methods
	}
	named := regexp.MustCompile(`^(?:(GET|POST|PUT|DELETE) )?(/(?:v1|artifact|openapi)[^\s?[]*)`)
	count := 0
	for _, page := range documents(t) {
		for _, span := range spans(t, page) {
			m := named.FindStringSubmatch(span)
			if m == nil || strings.HasPrefix(m[2], "/v1/…") || m[2] == "/v1" {
				continue
			}
			count++
			methods, ok := known[parameter.ReplaceAllString(m[2], "*")]
			require.True(t, ok, "%s: %s: openapi.json has no such path", page, span)
			if m[1] != "" {
				require.Contains(t, methods, strings.ToLower(m[1]), "%s: %s", page, span)
			}
		}
	}
	require.Greater(t, count, 20)
}

// The commands of README's blocks can be parsed, and those of mcp-host and of the tools
// run in a clone.
func TestReadmeCommands(t *testing.T) {
	onlyUnix(t)
	commands := spans(t, "../README.md")
	for _, b := range blocks(t, "../README.md") {
		if b.language != "sh" {
			continue
		}
		file, err := syntax.NewParser().Parse(strings.NewReader(b.text), "README.md")
		require.NoError(t, err, "%s", b.text)
		require.NotEmpty(t, file.Stmts)
		commands = append(commands, strings.Split(b.text, "\n")...)
	}
	m := newMachine(t)
	_, err := m.run("cd /home/you/toolroom; export PATH=/home/you/toolroom/bin") // without the clients of this machine
	require.NoError(t, err)
	ran := 0
	for _, command := range commands {
		if !strings.Contains(command, "bin/mcp-") || strings.Contains(command, " -- ") {
			continue // a path, or what a client starts
		}
		out, err := m.run(strings.ReplaceAll(command, "PROJECT", home+"/project"))
		require.NoError(t, err, "%s\n%s", command, out)
		require.NotEmpty(t, out, command)
		ran++
	}
	require.Greater(t, ran, 4)
}

// The command that README declares as a tool prints JSON.
func TestReadmeDeclaredTool(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	m.install(filepath.Join(m.home, "toolroom", "bin"), "npx", "./tools/ls") // it is not called
	for _, b := range blocks(t, "../README.md") {
		if b.language == "yaml" {
			m.write("readme.yaml", b.text)
		}
	}
	out, err := m.run("mcp-host --config readme.yaml call clock")
	require.NoError(t, err, out)
	require.Regexp(t, `^\w+day, \d\d:\d\d\n$`, out)
}

// Variables of the environment, error codes and files that pages name in capital letters are
// in the sources.
func TestNamedVariablesExist(t *testing.T) {
	texts := literals(t)
	for _, pattern := range []string{"../Makefile", "../dist/*.go", "../examples/manifests/*.yaml", "../bench/*/*.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			texts = append(texts, read(t, file))
		}
	}
	all := strings.Join(texts, "\n")
	examples := []string{"X_API_KEY", "VSCODE_PID"} // of names with a known pattern
	count := 0
	for _, page := range documents(t) {
		for _, span := range spans(t, page) {
			if regexp.MustCompile(`^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$`).MatchString(span) && !slices.Contains(examples, span) {
				count++
				if !regexp.MustCompile(`\b` + span + `\b`).MatchString(all) {
					t.Errorf("%s names %s, which is in no source", page, span)
				}
			}
		}
	}
	require.Greater(t, count, 50)
}

// Paths and packages in the go commands that pages name exist.
func TestNamedPackagesExist(t *testing.T) {
	count := 0
	for _, page := range documents(t) {
		for _, m := range regexp.MustCompile("\\bgo (?:test|run|build)\\b[^`\n]*? \\./([a-z][a-z/]*)").FindAllStringSubmatch(read(t, page), -1) {
			count++
			require.DirExists(t, "../"+m[1], page)
		}
	}
	require.Positive(t, count)
}

// The commands that chat.md lists are those of the chat.
func TestChatCommandsExist(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	help, err := m.run("echo /help | mcp-host chat --model command")
	require.NoError(t, err, help)
	named := regexp.MustCompile(`^/[a-z]+`)
	count := 0
	for _, span := range spans(t, "chat.md") {
		if name := named.FindString(span); name != "" {
			count++
			require.Regexp(t, `(?m)^ *`+name+`\b`, help, span)
		}
	}
	require.Greater(t, count, 8)
}

// Shell commands in the text of a page can be parsed.
func TestNamedCommandsAreCommands(t *testing.T) {
	program := regexp.MustCompile(`^(?:(?:sudo|cd|echo|export|git|make|go|npm|npx|docker|podman|skopeo|cosign|openssl|systemctl|launchctl|dpkg|rpm|apk|xattr|curl|claude|codex) |(?:\S*/)?mcp-[a-z_]+ )`)
	count := 0
	for _, page := range documents(t) {
		for _, span := range spans(t, page) {
			if program.MatchString(span) {
				count++
				_, err := syntax.NewParser().Parse(strings.NewReader(span), page)
				require.NoError(t, err, "%s: %s", page, span)
			}
		}
	}
	require.Greater(t, count, 100)
}
