package toolsearch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// The names of the meta-tools.
const (
	searchTools  = "search_tools"
	describeTool = "describe_tool"
	callTool     = "call_tool"
)

// A metaTool is one of the tools that give access to the tools that are not listed: the
// texts of its definition.
type metaTool struct{ name, description, schema, annotations string }

// readOnlyAnnotations are the annotations of search_tools and describe_tool.
const readOnlyAnnotations = `{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`

// metaTools returns search_tools, describe_tool and call_tool, in list order.
func metaTools() []metaTool {
	return []metaTool{
		{searchTools, "Searches tools that are not listed here. Describe the task in a few words. Returns the name, the first sentence of the description and the parameters of the best matches. Call one with call_tool; describe_tool returns its whole definition.",
			`{"type":"object","properties":{"query":{"type":"string","description":"the task in a few words, e.g. create issue"},"server":{"type":"string","description":"only tools of this server; without query, all of its tools"},"limit":{"type":"integer","minimum":1,"maximum":50,"description":"maximum number (default 10)"}}}`,
			readOnlyAnnotations},
		{describeTool, "Returns the whole definition of a tool found by search_tools, with the schema of its arguments.",
			`{"type":"object","properties":{"name":{"type":"string","description":"name returned by search_tools"}},"required":["name"]}`,
			readOnlyAnnotations},
		{callTool, "Calls a tool that is not listed here, with arguments that fit its definition. Returns the tool's result.",
			`{"type":"object","properties":{"name":{"type":"string","description":"name returned by search_tools"},"arguments":{"type":"object","description":"arguments of that tool"}},"required":["name"]}`,
			`{}`},
	}
}

// isMetaTool reports whether a tool with this name is a meta-tool.
func isMetaTool(name string) bool {
	return slices.ContainsFunc(metaTools(), func(s metaTool) bool { return s.name == name })
}

// maxServers bounds the servers named in the description of search_tools.
const maxServers = 40

// metaToolDefinitions returns the definitions of the meta-tools. The description of
// search_tools names the servers; otherwise no model would look for their tools.
func metaToolDefinitions(tools []*call.Tool) []json.RawMessage {
	var servers []string
	for _, t := range tools {
		if !slices.Contains(servers, t.Server) {
			servers = append(servers, t.Server)
		}
	}
	slices.Sort(servers)
	if more := len(servers) - maxServers; more > 0 {
		servers = append(servers[:maxServers], fmt.Sprintf("%d more", more))
	}
	var all []json.RawMessage
	for _, s := range metaTools() {
		text := s.description
		if s.name == searchTools {
			text += " Servers: " + strings.Join(servers, ", ") + "."
		}
		d := jsonrpc.AppendString([]byte(`{"name":"`+s.name+`","description":`), text)
		d = append(append(append(d, `,"inputSchema":`...), s.schema...), `,"annotations":`...)
		d = append(d, s.annotations...)
		if size := largestResult(tools); s.name == callTool && size > 0 {
			d = fmt.Appendf(d, `,"_meta":{%q:%d}`, maxResultSize, size)
		}
		all = append(all, append(d, '}'))
	}
	return all
}

// maxResultSize is the _meta member of a definition that tells Claude Code how many
// characters of a result to give the model. Beyond its own limit it gives a preview.
const maxResultSize = "anthropic/maxResultSizeChars"

// largestResult returns the largest maxResultSize of the tools' definitions, or 0:
// call_tool can return the result of any tool.
func largestResult(tools []*call.Tool) int {
	largest := 0
	for _, t := range tools {
		if !bytes.Contains(t.Definition, []byte(maxResultSize)) {
			continue
		}
		var size int
		meta := jsonrpc.MemberOf(t.Definition, "_meta")
		if json.Unmarshal(jsonrpc.MemberOf(meta, maxResultSize), &size) == nil {
			largest = max(largest, size)
		}
	}
	return largest
}

// decodeArguments returns the arguments of the meta-tool called tool by their names,
// without those that are null. It returns INVALID_PARAMS for names that are not in
// known.
func decodeArguments(tool string, arguments json.RawMessage, known ...string) (map[string]json.RawMessage, error) {
	all, err := jsonrpc.Members(arguments)
	if err != nil {
		return nil, toolerr.New(toolerr.InvalidParams, "%s: arguments: %w", tool, err)
	}
	read := map[string]json.RawMessage{}
	for _, m := range all {
		if !slices.Contains(known, m.Name) {
			hint := ""
			if tool == callTool {
				hint = "; the tool's own arguments go into arguments"
			}
			return nil, toolerr.New(toolerr.InvalidParams, "%s takes %s, not %s%s", tool, strings.Join(known, ", "), m.Name, hint)
		}
		if string(m.Value) != "null" {
			read[m.Name] = m.Value
		}
	}
	return read, nil
}

// stringArgument returns the string argument name of a meta-tool, "" if raw is nil. It
// returns INVALID_PARAMS for other types.
func stringArgument(tool, name string, raw json.RawMessage) (text string, err error) {
	if raw == nil {
		return "", nil
	}
	if raw[0] != '"' || json.Unmarshal(raw, &text) != nil {
		return "", toolerr.New(toolerr.InvalidParams, "%s: %s must be a string", tool, name)
	}
	return text, nil
}

const (
	defaultHits = 10
	maxHits     = 50
)

// runSearchTools returns the result of search_tools, at most maxHits tools. It returns
// INVALID_PARAMS for wrong arguments.
func (o *List) runSearchTools(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	given, err := decodeArguments(searchTools, arguments, "query", "server", "limit")
	if err != nil {
		return nil, err
	}
	query, err := stringArgument(searchTools, "query", given["query"])
	if err != nil {
		return nil, err
	}
	server, err := stringArgument(searchTools, "server", given["server"])
	if err != nil {
		return nil, err
	}
	limit := defaultHits
	if raw := given["limit"]; raw != nil && (json.Unmarshal(raw, &limit) != nil || limit < 1) {
		return nil, toolerr.New(toolerr.InvalidParams, "search_tools: limit must be a whole number from 1 to %d", maxHits)
	}
	limit = min(limit, maxHits)
	if strings.TrimSpace(query) == "" && server == "" {
		return nil, toolerr.New(toolerr.MissingParameter, "search_tools: describe the task in query, or give a server")
	}
	s := o.selectionFor(o.view.Snapshot(ctx))
	hits := s.find(query, server)
	return textResult(s.formatFound(hits, limit, query, server)), nil
}

// find returns the tools that match a search, best first; without query, all tools of the
// server. With server "" it searches all servers.
func (s *selection) find(query, server string) (found []*call.Tool) {
	if strings.TrimSpace(query) == "" {
		for _, t := range s.tools {
			if t.Server == server {
				found = append(found, t)
			}
		}
		return found
	}
	for _, hit := range s.searchIndex().Find(query, len(s.tools), func(doc int) bool { return server == "" || s.tools[doc].Server == server }) {
		found = append(found, s.tools[hit.Doc])
	}
	return found
}

// formatFound returns the first limit of the found tools as text for a model. Without
// any, the text names the servers.
func (s *selection) formatFound(found []*call.Tool, limit int, query, server string) string {
	if len(found) == 0 {
		var servers []string
		for _, t := range s.tools {
			if !slices.Contains(servers, t.Server) {
				servers = append(servers, t.Server)
			}
		}
		if server != "" && !slices.Contains(servers, server) {
			return fmt.Sprintf("no server %q; available: %s\n", server, strings.Join(servers, ", "))
		}
		return fmt.Sprintf("no tool matches %q among %d; try other words, or a server: %s\n", query, len(s.tools), strings.Join(servers, ", "))
	}
	var b strings.Builder
	for _, t := range found[:min(limit, len(found))] {
		d := parseDefinition(t.Definition)
		fmt.Fprintf(&b, "%s: %s\n  arguments: %s\n", t.Name, d.summary(), d.signature())
	}
	if more := len(found) - limit; more > 0 {
		fmt.Fprintf(&b, "(%d more match; be more specific in query, or raise limit)\n", more)
	}
	b.WriteString("Call one with call_tool {\"name\":…,\"arguments\":{…}}; describe_tool returns its whole definition.\n")
	return b.String()
}

// runDescribeTool returns the result of describe_tool: the tool's whole definition. It
// returns INVALID_PARAMS for wrong arguments, and an error for an unknown tool.
func (o *List) runDescribeTool(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error) {
	given, err := decodeArguments(describeTool, arguments, "name")
	if err != nil {
		return nil, err
	}
	tool, err := o.findTool(ctx, describeTool, given["name"])
	if err != nil {
		return nil, err
	}
	return textResult(string(tool.Definition)), nil
}

// callTarget returns the tool and the arguments that a call of call_tool names.
func (o *List) callTarget(ctx context.Context, arguments json.RawMessage) (*call.Tool, json.RawMessage, error) {
	given, err := decodeArguments(callTool, arguments, "name", "arguments")
	if err != nil {
		return nil, nil, err
	}
	tool, err := o.findTool(ctx, callTool, given["name"])
	if err != nil {
		return nil, nil, err
	}
	args := given["arguments"]
	if args == nil {
		args = json.RawMessage(`{}`)
	}
	if args[0] != '{' {
		return nil, nil, toolerr.New(toolerr.InvalidParams, "call_tool: arguments must be an object that fits the definition of %s, not text", tool.Name)
	}
	return tool, args, nil
}

// findTool returns the tool whose name is the argument raw of the meta-tool by; only for
// call_tool it can be one with Unlisted set. For an unknown name, the error suggests
// similar ones.
func (o *List) findTool(ctx context.Context, by string, raw json.RawMessage) (*call.Tool, error) {
	name, err := stringArgument(by, "name", raw)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, toolerr.New(toolerr.MissingParameter, "%s: name is missing; search_tools finds names", by)
	}
	if tool, ok := o.view.Lookup(ctx, name); ok && (tool.Unlisted == nil || by == callTool) {
		return tool, nil
	}
	var like []string
	for _, t := range o.selectionFor(o.view.Snapshot(ctx)).find(name, "") {
		if like = append(like, t.Name); len(like) == 3 {
			break
		}
	}
	hint := "search_tools finds tool names"
	if len(like) > 0 {
		hint = "the closest are " + strings.Join(like, ", ")
	}
	return nil, toolerr.New(toolerr.ToolNotFound, "no tool %q; %s", name, hint)
}

// textResult returns a tool result with one text.
func textResult(text string) json.RawMessage {
	return append(jsonrpc.AppendString([]byte(`{"content":[{"type":"text","text":`), text), `}]}`...)
}
