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

// A toolServer serves a runner's tools through an mcp-go server.
type toolServer struct {
	*runner
	identityMeta json.RawMessage // the _meta of modern results, with the server's name and version
}

// newToolServer returns a toolServer and its mcp-go server. If announceChanges
// is true, clients are notified when tools are added or removed.
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

// mcpServerTools returns the tools in mcp-go's form.
func (s *toolServer) mcpServerTools(tools []*Tool) []server.ServerTool {
	all := make([]server.ServerTool, 0, len(tools))
	for _, t := range tools {
		all = append(all, server.ServerTool{Tool: mcpTool(t), Handler: func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.handleToolCall(ctx, t, req)
		}})
	}
	return all
}

// mcpTool returns mcp-go's form of a tool. Its encoding equals Tool.Definition
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

// resolveToolName is mcp-go's hook before tools/call. It replaces an alias by
// the tool's name, and answers an unknown name with the available ones.
func (s *toolServer) resolveToolName(ctx context.Context, _ any, req *mcp.CallToolRequest) {
	if t, ok := s.tools.ByName(req.Params.Name); ok {
		req.Params.Name = t.Name()
		return
	}
	message := fmt.Sprintf("unknown tool %q; available tools: %s", req.Params.Name, strings.Join(s.tools.Names(), ", "))
	object, err := jsonrpc.Marshal(mcp.NewJSONRPCErrorDetails(mcp.INVALID_PARAMS, message, nil))
	if err == nil {
		wire.SetRawError(ctx, object)
	}
}

// answerToolsList is mcp-go's hook after tools/list. It makes the definitions,
// byte for byte and in the registry's order, the result. It leaves a request
// with a cursor to mcp-go, since there is only one page.
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

// closeResult appends the end of a result to openObject, a JSON object without
// its closing brace: in the modern era the members that every result has, then
// the brace.
func (s *toolServer) closeResult(ctx context.Context, openObject json.RawMessage) json.RawMessage {
	if server.IsModernRequest(ctx) {
		openObject = append(openObject, `,"resultType":"complete","_meta":`...)
		openObject = append(openObject, s.identityMeta...)
	}
	return append(openObject, '}')
}

// addModernMembers returns a tool's result with the members that every result in the
// modern era has. ctx must belong to a modern request. The tool's own _meta is kept.
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

// answerToolCall answers the tools/call that ctx belongs to, if it has only the
// usual members and names a known tool. It returns false for other requests,
// which mcp-go must answer.
func (s *toolServer) answerToolCall(ctx context.Context) (answered bool) {
	name, arguments, ok := parsePlainCall(wire.RawParams(ctx))
	if !ok {
		return false
	}
	t, ok := s.tools.ByName(name)
	return ok && wire.SetRawResult(ctx, s.run(ctx, t, arguments).JSON())
}

// parsePlainCall reads the parameters of tools/call. ok is false for those that
// need mcp-go: without a name, with members other than name, arguments and
// _meta (which is ignored), or with a member of the wrong type.
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

// handleToolCall is mcp-go's handler of tools/call for t. It takes the
// arguments of a request over wire.ServeStdio from wire.RawParams, since mcp-go
// does not get them.
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
