// Package app runs toolroom's host inside a Go program: it serves the tools of MCP servers,
// and functions of the program as further tools, through one list, with the policy, approvals,
// limits and logs of the configuration.
//
// Open reads a configuration and returns a Host. Nothing is started before it is needed:
// a server starts when its tools are listed or called for the first time. Call calls a tool,
// ServeStdio and ServeHTTP serve MCP clients. Close ends all servers.
//
// The command mcp-host does the same from a command line.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

// Options configure a Host. The zero value is a host without servers that stores nothing.
type Options struct {
	// ConfigFile is a toolroom.yaml, or the configuration of another MCP client, as for
	// mcp-host --config. "" reads no file.
	ConfigFile string
	// ToolDir is the directory of the bundled tools, the programs mcp-ls, mcp-grep and so on.
	// "" serves none of them.
	ToolDir string
	// Roots are the directories that the bundled tools may open; DIR:ro is not written to.
	// Without any, a tool uses the working directory.
	Roots []string
	// StateDir is the directory for what outlives the host: approvals, the audit log, trust
	// in configurations, undo. It is created when needed, with mode 0700. "" keeps all of it in memory.
	StateDir string
	// Notify is called with a notice for the user, one sentence per call, such as that a
	// server is left out or that a changed configuration has errors. nil drops notices. The calls can
	// come from several goroutines at once.
	Notify func(notice string)
}

// load reads the configuration from ConfigFile, or builds one from the other options if
// that is "".
func (o Options) load() (config.Config, error) {
	dir := o.ToolDir
	if dir != "" {
		var err error
		if dir, err = filepath.Abs(dir); err != nil {
			return config.Config{}, err
		}
	}
	flags := config.Flags{Config: o.ConfigFile, NoFiles: true, Roots: o.Roots, State: o.StateDir, Memory: o.StateDir == ""}
	return config.Load(flags, dir, "", os.Getenv, os.Environ())
}

// Host serves the tools of its servers and the registered tools. Its methods are safe for
// concurrent use.
type Host struct {
	core    *core.App
	options Options
	closing sync.Once
}

// Open returns a host with the configuration of o. An error tells what is wrong with the
// configuration. The caller closes the host.
func Open(o Options) (*Host, error) {
	cfg, err := o.load()
	if err != nil {
		return nil, err
	}
	running, err := core.Open(cfg)
	if err != nil {
		return nil, err
	}
	h := &Host{core: running, options: o}
	running.OnNotice(h.notify)
	for _, notice := range cfg.Notices {
		h.notify(notice)
	}
	return h, nil
}

// notify passes a notice to Options.Notify, if that is set.
func (h *Host) notify(notice string) {
	if h.options.Notify != nil {
		h.options.Notify(notice)
	}
}

// Close ends all servers and waits until their processes are gone. Calls that are still
// running fail. Close can be called more than once.
func (h *Host) Close() { h.closing.Do(h.core.Close) }

// Register adds functions of this program as tools, all of them or none. They are served under
// their own names, and calls of them pass the same policy, limits and logs as calls of a
// server's tools; for rules they belong to the server "custom". A name that another tool
// is known to have is an error.
func (h *Host) Register(tools ...*mcpkit.Tool) error { return h.core.Register(tools...) }

// Unregister removes a registered tool and reports whether it was registered.
func (h *Host) Unregister(name string) bool { return h.core.Unregister(name) }

// Watch reloads the configuration whenever one of its files changes, until ctx ends; then it
// returns nil. Options.Notify gets the error of a wrong configuration, which changes nothing.
// Without ConfigFile there is nothing to watch, which is an error.
func (h *Host) Watch(ctx context.Context) error {
	if h.options.ConfigFile == "" {
		return errors.New("no configuration file to watch: Options.ConfigFile is empty")
	}
	return h.core.Follow(ctx, h.options.load, config.WatchOptions{})
}

// Tool is a tool that the host serves.
type Tool struct {
	Name        string          // as served; Call takes it
	Server      string          // the name of its server in the configuration; "custom" for registered tools
	Description string          // for the model
	InputSchema json.RawMessage // the JSON Schema of the arguments
	Definition  json.RawMessage // the whole definition, as in the answer of tools/list
}

// Tools returns all tools in the order of the configuration. It starts servers whose tools are
// not known yet. If some servers cannot be listed, it returns the tools of the others together
// with an error that names each of them.
func (h *Host) Tools(ctx context.Context) ([]Tool, error) {
	var tools []Tool
	for _, t := range h.core.List(ctx) {
		var definition struct {
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"inputSchema"`
		}
		if err := json.Unmarshal(t.Definition, &definition); err != nil {
			return nil, fmt.Errorf("the definition of %s is malformed: %w", t.Name, err)
		}
		tools = append(tools, Tool{
			Name: t.Name, Server: t.Server, Description: definition.Description, InputSchema: definition.InputSchema, Definition: t.Definition,
		})
	}
	if err := ctx.Err(); err != nil {
		return tools, err
	}
	return tools, errors.Join(h.core.ListErrors("")...)
}
