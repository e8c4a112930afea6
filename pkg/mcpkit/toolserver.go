package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/buildinfo"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// A toolServer puts tools into an mcp-go server.
type toolServer struct {
	*runner
	identityMeta json.RawMessage // the server's identity, as modern results carry it
}

// newToolServer makes the server. If changes is true, it announces to its
// clients when tools are added or removed.
func newToolServer(c *Command, r *runner, announceChanges bool) (*toolServer, *server.MCPServer) {
	s := &toolServer{runner: r}
	identity := mcp.Implementation{Name: c.program(), Title: c.Title, Version: buildinfo.Version()}
	meta, err := jsonrpc.Marshal(map[string]any{mcp.MetaKeyServerInfo: identity})
	if err != nil { // strings always encode
		meta = json.RawMessage("{}")
	}
	s.identityMeta = meta

	hooks := &server.Hooks{}
	hooks.AddBeforeCallTool(s.resolveToolName)
	hooks.AddAfterListTools(s.answerToolsList)
	m := server.NewMCPServer(identity.Name, identity.Version,
		server.WithTitle(c.Title),
		server.WithInstructions(c.instructionsWithRoots()),
		server.WithToolCapabilities(announceChanges),
		server.WithHooks(hooks),
	)
	m.AddTools(s.mcpServerTools(r.tools.All())...)
	return s, m
}

// serverTools returns the tools in mcp-go's form.
func (s *toolServer) mcpServerTools(tools []*Tool) []server.ServerTool {
	all := make([]server.ServerTool, 0, len(tools))
	for _, t := range tools {
		all = append(all, server.ServerTool{Tool: mcpTool(t), Handler: func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.handleToolCall(ctx, t, req)
		}})
	}
	return all
}

// mcpTool returns mcp-go's form of a tool. Encoded, it equals the definition
// except for the order of members.
func mcpTool(t *Tool) mcp.Tool {
	var tool mcp.Tool
	var schemas struct {
		Input  json.RawMessage `json:"inputSchema"`
		Output json.RawMessage `json:"outputSchema"`
	}
	if json.Unmarshal(t.Definition(), &tool) != nil || json.Unmarshal(t.Definition(), &schemas) != nil {
		return mcp.Tool{Name: t.Name(), RawInputSchema: json.RawMessage(`{"type":"object"}`)}
	}
	tool.InputSchema, tool.RawInputSchema = mcp.ToolInputSchema{}, schemas.Input
	tool.OutputSchema, tool.RawOutputSchema = mcp.ToolOutputSchema{}, schemas.Output
	return tool
}

// resolveName makes tools/call accept aliases, and answers an unknown name with
// the available ones.
func (s *toolServer) resolveToolName(ctx context.Context, _ any, req *mcp.CallToolRequest) {
	if t, ok := s.tools.ByName(req.Params.Name); ok {
		req.Params.Name = t.Name()
		return
	}
	said := fmt.Sprintf("unknown tool %q; available tools: %s", req.Params.Name, strings.Join(s.tools.Names(), ", "))
	object, err := jsonrpc.Marshal(mcp.NewJSONRPCErrorDetails(mcp.INVALID_PARAMS, said, nil))
	if err == nil {
		wire.SetRawError(ctx, object)
	}
}

// listDefinitions answers tools/list with the definitions byte for byte, in the
// registry's order. A request with a cursor goes to mcp-go, since there is only
// one page.
func (s *toolServer) answerToolsList(ctx context.Context, _ any, req *mcp.ListToolsRequest, _ *mcp.ListToolsResult) {
	if req.Params.Cursor != "" {
		return
	}
	raw := append(make(json.RawMessage, 0, 4096), `{"tools":[`...)
	for i, t := range s.tools.All() {
		if i > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, t.Definition()...)
	}
	raw = append(raw, ']')
	if server.IsModernRequest(ctx) {
		// As mcp-go says: never cache, never share.
		raw = append(raw, `,"ttlMs":0,"cacheScope":"private"`...)
	}
	wire.SetRawResult(ctx, s.closeResult(ctx, raw))
}

// completeResult completes a result object; in the modern era with the members
// that every result carries.
func (s *toolServer) closeResult(ctx context.Context, openObject json.RawMessage) json.RawMessage {
	if server.IsModernRequest(ctx) {
		openObject = append(openObject, `,"resultType":"complete","_meta":`...)
		openObject = append(openObject, s.identityMeta...)
	}
	return append(openObject, '}')
}

// addModernMembers adds to a tool's result the members that every modern result
// carries, and keeps the tool's own _meta.
func (s *toolServer) addModernMembers(ctx context.Context, result json.RawMessage) json.RawMessage {
	if bytes.Contains(result, []byte(`"_meta"`)) {
		if meta := jsonrpc.MemberOf(result, "_meta"); len(meta) > len("{}") {
			all := append(append(append([]byte{}, meta[:len(meta)-1]...), ','), s.identityMeta[1:]...)
			if merged, err := jsonrpc.SetMember(result, "_meta", all); err == nil {
				return append(merged[:len(merged)-1:len(merged)-1], `,"resultType":"complete"}`...)
			}
		}
	}
	return s.closeResult(ctx, result[:len(result)-1:len(result)-1])
}

// callDirect answers a tools/call that has only the usual members and names a
// known tool. It reports false for other requests, which mcp-go answers.
func (s *toolServer) answerToolCall(ctx context.Context) bool {
	name, arguments, ok := parsePlainCall(wire.RawParams(ctx))
	if !ok {
		return false
	}
	t, ok := s.tools.ByName(name)
	return ok && wire.SetRawResult(ctx, s.run(ctx, t, arguments).JSON())
}

// parsePlainCall reads the params of a tools/call. ok is false if they have
// other members than name, arguments and _meta, or if one has the wrong type.
func parsePlainCall(params json.RawMessage) (name string, arguments json.RawMessage, ok bool) {
	members, err := jsonrpc.Members(params)
	if err != nil {
		return "", nil, false
	}
	for _, m := range members {
		switch m.Name {
		case "name":
			if json.Unmarshal(m.Value, &name) != nil {
				return "", nil, false
			}
		case "arguments":
			if arguments = m.Value; arguments[0] != '{' {
				return "", nil, false
			}
		case "_meta":
		default:
			return "", nil, false
		}
	}
	return name, arguments, name != ""
}

// call answers tools/call. For a request over wire.ServeStdio it reads the arguments
// from wire.RawParams, since mcp-go does not get them.
func (s *toolServer) handleToolCall(ctx context.Context, t *Tool, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	arguments := req.Params.RawArguments
	if members, err := jsonrpc.Members(wire.RawParams(ctx)); arguments == nil && err == nil {
		if i := slices.IndexFunc(members, func(m jsonrpc.Member) bool { return m.Name == "arguments" }); i >= 0 {
			arguments = members[i].Value
		}
	}
	raw := s.run(ctx, t, arguments).JSON()
	if server.IsModernRequest(ctx) {
		raw = s.addModernMembers(ctx, raw)
	}
	if wire.SetRawResult(ctx, raw) {
		return &mcp.CallToolResult{}, nil
	}
	var res mcp.CallToolResult
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("encoding the result: %w", err)
	}
	return &res, nil
}
