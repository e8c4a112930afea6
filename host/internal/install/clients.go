// Package install adds the tools to the configurations of MCP clients, and takes
// them out again.
package install

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// Scope says for which projects a configuration of a client is.
type Scope string

// The scopes.
const (
	User    Scope = "user"    // all projects of this user
	Project Scope = "project" // one directory, for everybody who works in it
)

// Client is a program that uses MCP servers.
type Client struct {
	ID    string // as on the command line
	Title string // for people
	// Restart says what makes the client read its configuration; "": it reads it at
	// once.
	Restart string

	format format
	member string // member of the configuration that has the servers by name
	// product names the client for config.Locations.
	product string
	// project is the path of its configuration below a project's directory, with
	// slashes; "" if it has none.
	project string
	// projectRoot is the client's variable for the open project, "" without one. Claude Code needs none: it sets CLAUDE_PROJECT_DIR.
	projectRoot string
	// command is the client's own program for its configuration; "": none.
	command string
	entry   func(Server) []field // the fields of a server's entry
}

// Server is a server to be added.
type Server struct {
	Name    string
	Command string
	Args    []string
}

// field is a member of an entry. value is a string, a bool, an int or a list of
// strings.
type field struct {
	name  string
	value any
}

// commandEntry returns an entry with the fields command and args.
func commandEntry(s Server) []field { return []field{{"command", s.Command}, {"args", s.Args}} }

// typedEntry returns an entry with the fields type, command and args.
func typedEntry(s Server) []field {
	return append([]field{{"type", "stdio"}}, commandEntry(s)...)
}

// Clients returns the clients in the order of the documentation. Where each keeps
// its configuration, and its form, is documented at:
//
//	claude-desktop  https://modelcontextprotocol.io/docs/develop/connect-local-servers
//	claude-code     https://docs.claude.com/en/docs/claude-code/mcp
//	codex           https://developers.openai.com/codex/mcp
//	gemini          https://geminicli.com/docs/tools/mcp-server/
//	vscode          https://code.visualstudio.com/docs/copilot/customization/mcp-servers
//	cursor          https://cursor.com/docs/context/mcp
//	windsurf        https://docs.windsurf.com/windsurf/cascade/mcp
//	opencode        https://opencode.ai/docs/mcp-servers/
//	zed             https://zed.dev/docs/ai/mcp
//	goose           https://block.github.io/goose/docs/getting-started/using-extensions/
func Clients() []Client {
	return []Client{
		{ID: "claude-desktop", Title: "Claude Desktop", Restart: "restart Claude Desktop", product: "claude-desktop", format: jsonFormat, member: "mcpServers", entry: commandEntry},
		{ID: "claude-code", Title: "Claude Code", Restart: "start a new session", product: "claude-code", format: jsonFormat, member: "mcpServers", project: ".mcp.json", command: "claude", entry: typedEntry},
		{ID: "codex", Title: "Codex", Restart: "start a new session", product: "codex", format: tomlFormat, member: "mcp_servers", project: ".codex/config.toml", entry: commandEntry},
		{ID: "gemini", Title: "Gemini CLI", Restart: "start a new session", product: "gemini", format: jsonFormat, member: "mcpServers", project: ".gemini/settings.json", entry: commandEntry},
		{ID: "vscode", Title: "VS Code", Restart: "start the server in the list of MCP servers", product: "vscode", format: jsonFormat, member: "servers", project: ".vscode/mcp.json", projectRoot: "${workspaceFolder}", entry: typedEntry},
		{ID: "cursor", Title: "Cursor", Restart: "turn the server on in the settings", product: "cursor", format: jsonFormat, member: "mcpServers", project: ".cursor/mcp.json", projectRoot: "${workspaceFolder}", entry: commandEntry},
		{ID: "windsurf", Title: "Windsurf", Restart: "refresh the list of MCP servers", product: "windsurf", format: jsonFormat, member: "mcpServers", entry: commandEntry},
		{ID: "opencode", Title: "opencode", Restart: "start a new session", product: "opencode", format: jsonFormat, member: "mcp", project: "opencode.json", entry: func(s Server) []field {
			return []field{{"type", "local"}, {"command", append([]string{s.Command}, s.Args...)}, {"enabled", true}}
		}},
		{ID: "zed", Title: "Zed", product: "zed", format: jsonFormat, member: "context_servers", project: ".zed/settings.json", entry: commandEntry},
		{ID: "goose", Title: "goose", Restart: "start a new session", product: "goose", format: yamlFormat, member: "extensions", entry: func(s Server) []field {
			return []field{{"name", s.Name}, {"type", "stdio"}, {"enabled", true}, {"cmd", s.Command}, {"args", s.Args}, {"timeout", 300}}
		}},
	}
}

// ByID returns the client with this ID; false if no client has it.
func ByID(id string) (Client, bool) {
	all := Clients()
	i := slices.IndexFunc(all, func(c Client) bool { return c.ID == id })
	if i < 0 {
		return Client{}, false
	}
	return all[i], true
}

// Environment is the machine, user and project whose configurations are read.
type Environment struct {
	System string              // as runtime.GOOS
	Getenv func(string) string // reads an environment variable of the user
	Dir    string              // the project, absolute
}

// File returns the path of the configuration: the first that exists of the names
// that the client reads, or else the first. ok is false if the client has none in
// this scope.
func (c Client) File(scope Scope, env Environment) (path string, ok bool) {
	if scope == Project {
		if c.project == "" {
			return "", false
		}
		path = filepath.Join(env.Dir, filepath.FromSlash(c.project))
		if jsonc := path + "c"; c.ID == "opencode" && !exists(path) && exists(jsonc) {
			return jsonc, true
		}
		return path, true
	}
	files := config.Locations(c.product, env.System, env.Getenv)
	if c.ID == "vscode" {
		files = slices.DeleteFunc(files, func(path string) bool { return filepath.Base(path) != "mcp.json" })
	}
	if len(files) == 0 {
		return "", false
	}
	if i := slices.IndexFunc(files, exists); i >= 0 {
		return files[i], true
	}
	return files[0], true
}

// exists reports whether there is a file or a link, even a broken one, at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// DefaultRoots returns the values of --root for a server's command line if the user
// gives none; nil for Claude Code, which sets CLAUDE_PROJECT_DIR. ok is false if the
// user must give roots, since the client does not tell servers which directory is open.
func (c Client) DefaultRoots(scope Scope, env Environment) (roots []string, ok bool) {
	switch {
	case c.ID == "claude-code":
		return nil, true
	case scope != Project:
		return nil, false
	case c.projectRoot != "":
		return []string{c.projectRoot}, true
	}
	return []string{env.Dir}, true
}
