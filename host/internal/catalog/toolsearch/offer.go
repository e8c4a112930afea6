// Package toolsearch decides which tools a client of the MCP doors is shown when
// there are more than a model's context should hold.
//
// Within the bounds of its Config the list is the catalogue's. Beyond them
// three tools are listed first (search_tools, describe_tool and call_tool),
// then as many of the others as fit: those that are pinned, then those of the
// patterns of Priority, then the rest, each in the catalogue's order, in which
// all of them are listed, so that the list is the same as long as the catalogue
// is. What is pinned is listed even if it alone is too much.
//
// A tool that is not listed is found with search_tools, read with
// describe_tool, and called with call_tool, or by its name as before. The door
// makes of a call of call_tool the call of the tool that it names, before
// anything else sees it: policy, limits and the audit log know nothing of the
// detour. To search and to read a definition is to list, and is treated so.
//
// A server's tool with the name of one of the three is not listed while they
// are, but can be called with call_tool.
package toolsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/catalog"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// Config says how much may be listed. The zero value lists everything.
type Config struct {
	MaxTools int // with those that stand in for others; 0: any number

	Window       int // tokens that the clients' models take; 0: 200 000
	ToolsPercent int // of it that definitions may take; 0: all they want

	Pinned   []string // patterns of served names, with *
	Priority []string // the first that matches counts
}

// DefaultWindow is the context window of a model that nothing is said of.
const DefaultWindow = 200_000

// Validate names the field that is wrong.
func (c Config) Validate() error {
	switch {
	case c.MaxTools != 0 && c.MaxTools < len(standIns()):
		return fmt.Errorf("context: max_tools is %d; want at least %d, for the tool search tools", c.MaxTools, len(standIns()))
	case c.Window < 0:
		return fmt.Errorf("context: window must not be negative, got %d", c.Window)
	case c.ToolsPercent < 0 || c.ToolsPercent > 100:
		return fmt.Errorf("context: tools_percent is %d, not between 0 and 100", c.ToolsPercent)
	}
	if c.MaxTools == 0 && c.ToolsPercent == 0 && len(c.Pinned)+len(c.Priority)+c.Window > 0 {
		return errors.New("context: without max_tools or tools_percent all tools are listed, and the other settings have no effect")
	}
	return nil
}

// bounded reports whether there is anything that could be too much.
func (c Config) bounded() bool { return c.MaxTools > 0 || c.ToolsPercent > 0 }

// tokens is how many the definitions may have; 0: any number.
func (c Config) tokens() int {
	window := c.Window
	if window == 0 {
		window = DefaultWindow
	}
	if c.ToolsPercent == 0 {
		return 0
	}
	return max(1, window*c.ToolsPercent/100)
}

// An Offer is a view of the catalogue as clients see it.
type Offer struct {
	cfg   Config
	view  *catalog.View
	count func(definition json.RawMessage) int // its tokens

	mu     sync.Mutex
	recent [2]*shelf // of the last snapshots, the last first
}

// New returns the offer of a view. count says how many tokens a definition has.
func New(cfg Config, view *catalog.View, count func(json.RawMessage) int) *Offer {
	return &Offer{cfg: cfg, view: view, count: count}
}

// View returns what the offer is made of.
func (o *Offer) View() *catalog.View { return o.view }

// List returns the result of a list request.
func (o *Offer) List(ctx context.Context, kind call.Kind, modern bool) json.RawMessage {
	if kind != call.Tools || !o.cfg.bounded() {
		return o.view.List(ctx, kind, modern)
	}
	return o.shelf(o.view.Snapshot(ctx)).list(modern)
}

// Lookup finds a tool by its served name, listed or not.
func (o *Offer) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	return o.view.Lookup(ctx, name)
}

// Locate finds the server of a prompt, resource or template.
func (o *Offer) Locate(ctx context.Context, kind call.Kind, name string) (server, original string, ok bool) {
	return o.view.Locate(ctx, kind, name)
}

// Concerns reports whether a change is one of what is listed.
func (o *Offer) Concerns(c catalog.Change) bool {
	if c.Kind != call.Tools || !o.cfg.bounded() {
		return c.Concerns(o.view)
	}
	before, after := c.Of(o.view)
	return !o.shelf(before).same(o.shelf(after))
}

// Same reports whether two offers list the same of what is known now.
func (o *Offer) Same(other *Offer, kind call.Kind) bool {
	if kind != call.Tools {
		return o.view.Same(other.view, kind)
	}
	return o.shelf(o.view.Now()).same(other.shelf(other.view.Now()))
}

// IsMetaTool reports whether a name is that of a tool that stands in for others.
// One of a server's has its name while the list is whole.
func (o *Offer) IsMetaTool(name string) bool {
	if !o.cfg.bounded() || !slices.ContainsFunc(standIns(), func(s standIn) bool { return s.name == name }) {
		return false
	}
	s := o.shelf(o.view.Now())
	_, taken := s.of.ByName(name)
	return s.short() || !taken
}

// Resolve carries out a call of a tool that stands in for others. It returns
// the result, or which tool is to be called instead, and with which arguments.
func (o *Offer) Resolve(ctx context.Context, name string, arguments json.RawMessage) (result json.RawMessage, tool *call.Tool, args json.RawMessage, err error) {
	switch name {
	case searchTools:
		result, err = o.search(ctx, arguments)
	case describeTool:
		result, err = o.describe(ctx, arguments)
	case callTool:
		tool, args, err = o.target(ctx, arguments)
	default:
		err = toolerr.New(toolerr.ToolNotFound, "there is no tool %s", name)
	}
	return result, tool, args, err
}
