// Package toolsearch selects the tools that an MCP client is shown if there are more
// than a model's context should hold.
//
// Within the limits of its Config the list is the catalog's. Beyond them the list
// begins with three meta-tools (search_tools, describe_tool and call_tool), followed
// by as many other tools as fit: pinned ones, then those that match Priority, then the
// rest, each group in the catalog's order. So the list is stable as long as the
// catalog is. Pinned tools are listed even if they alone exceed the limit.
//
// A tool that is not listed is found with search_tools, read with describe_tool, and
// called with call_tool or directly by its name. The gateway replaces a call of
// call_tool by the call of the named tool before any stage sees it, so policy, limits
// and the audit log see the real call. Searching and describing count as listing.
//
// A server's tool with the name of a meta-tool is not listed while the meta-tools are,
// but can be called with call_tool.
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

// Config holds the limits of the list. The zero value lists everything.
type Config struct {
	MaxTools int // including meta-tools; 0: no limit

	Window       int // context window of the clients' models in tokens; 0: 200 000
	ToolsPercent int // share of the window for definitions; 0: no limit

	Pinned   []string // patterns (with *) of served names that are always listed
	Priority []string // patterns of served names; the tools of an earlier one are listed first
}

// DefaultWindow is the context window of a model of unknown size, in tokens.
const DefaultWindow = 200_000

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	switch {
	case c.MaxTools != 0 && c.MaxTools < len(metaTools()):
		return fmt.Errorf("context: max_tools is %d; want at least %d, for the tool search tools", c.MaxTools, len(metaTools()))
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

// isLimited reports whether the list has any limit.
func (c Config) isLimited() bool { return c.MaxTools > 0 || c.ToolsPercent > 0 }

// maxTokens returns the largest number of tokens of all definitions; 0: no limit.
func (c Config) maxTokens() int {
	window := c.Window
	if window == 0 {
		window = DefaultWindow
	}
	if c.ToolsPercent == 0 {
		return 0
	}
	return max(1, window*c.ToolsPercent/100)
}

// A List is a view of the catalog as clients see it, with meta-tools if it is too
// long.
type List struct {
	cfg   Config
	view  *catalog.View
	count func(definition json.RawMessage) int // returns the tokens of a definition

	mu     sync.Mutex
	recent [2]*selection // of the latest snapshots, the latest first
}

// New returns the list of a view. count returns the number of tokens of a definition.
func New(cfg Config, view *catalog.View, count func(json.RawMessage) int) *List {
	return &List{cfg: cfg, view: view, count: count}
}

// View returns the underlying view.
func (o *List) View() *catalog.View { return o.view }

// List returns the result of a list request of the kind, in the modern or legacy protocol's
// form: for tools a selection that fits the limits. It waits until every server was listed
// once, or ctx ends.
func (o *List) List(ctx context.Context, kind call.ListKind, modern bool) json.RawMessage {
	if kind != call.Tools || !o.cfg.isLimited() {
		return o.view.List(ctx, kind, modern)
	}
	return o.selectionFor(o.view.Snapshot(ctx)).result(modern)
}

// Lookup returns the tool for a call of a served name, even if the list does not show it;
// see catalog.View.Lookup.
func (o *List) Lookup(ctx context.Context, name string) (*call.Tool, bool) {
	return o.view.Lookup(ctx, name)
}

// Locate returns the server of a prompt, resource or template; see catalog.View.Locate.
func (o *List) Locate(ctx context.Context, kind call.ListKind, name string) (server, original string, ok bool) {
	return o.view.Locate(ctx, kind, name)
}

// IsAffectedBy reports whether a change of the catalog changes this list.
func (o *List) IsAffectedBy(c catalog.Change) bool {
	if c.Kind != call.Tools || !o.cfg.isLimited() {
		return c.Affects(o.view)
	}
	before, after := c.BeforeAndAfter(o.view)
	return !o.selectionFor(before).listsSame(o.selectionFor(after))
}

// HasSameList reports whether two lists contain the same items of the kind now.
func (o *List) HasSameList(other *List, kind call.ListKind) bool {
	if kind != call.Tools {
		return o.view.HasSameList(other.view, kind)
	}
	return o.selectionFor(o.view.Current()).listsSame(other.selectionFor(other.view.Current()))
}

// IsMetaTool reports whether a call of name is a call of a meta-tool. While the list is
// complete, a server's tool may have such a name.
func (o *List) IsMetaTool(name string) bool {
	if !o.cfg.isLimited() || !slices.ContainsFunc(metaTools(), func(s metaTool) bool { return s.name == name }) {
		return false
	}
	s := o.selectionFor(o.view.Current())
	_, taken := s.snapshot.ByName(name)
	return s.isShortened() || !taken
}

// CallMetaTool runs a call of the meta-tool name. It returns the result of search_tools
// or describe_tool; for call_tool it returns the tool to call instead, with its
// arguments args.
func (o *List) CallMetaTool(ctx context.Context, name string, arguments json.RawMessage) (result json.RawMessage, tool *call.Tool, args json.RawMessage, err error) {
	switch name {
	case searchTools:
		result, err = o.runSearchTools(ctx, arguments)
	case describeTool:
		result, err = o.runDescribeTool(ctx, arguments)
	case callTool:
		tool, args, err = o.callTarget(ctx, arguments)
	default:
		err = toolerr.New(toolerr.ToolNotFound, "there is no tool %s", name)
	}
	return result, tool, args, err
}
