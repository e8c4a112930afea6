package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/host/internal/gateway"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// callerOf returns the caller of an API request. user is the name that the request gives its
// user; "": none. It becomes the caller's ID, and is not verified.
func callerOf(r *http.Request, user string) call.Caller {
	c := call.Caller{EntryPoint: EntryPoint, ID: EntryPoint, Account: gateway.Account(r.RemoteAddr)}
	if user != "" {
		c.ID = strings.Map(func(r rune) rune {
			if !unicode.IsPrint(r) {
				return '?'
			}
			return r
		}, truncate(user, 100))
	}
	return c
}

// listTools answers GET /v1/tools, in the format of the query.
func (a *API) listTools(w http.ResponseWriter, r *http.Request) {
	format := r.URL.Query().Get("format")
	var definitions []json.RawMessage
	var tools []llm.Tool
	for _, t := range a.cfg.Tools.List(r.Context()) {
		definitions = append(definitions, t.Definition)
		if read, err := llm.ParseTool(t.Definition); err == nil {
			tools = append(tools, read)
		}
	}
	var list *tree.Value
	switch format {
	case "", "mcp":
		writeAnswer(w, http.StatusOK, listOf(append([]json.RawMessage{}, definitions...)))
		return
	case "openai":
		list, _ = openai.EncodeTools(tools, openai.Options{})
	case "anthropic":
		list, _ = anthropic.EncodeTools(tools, anthropic.Options{})
	case "gemini":
		list, _ = gemini.EncodeTools(tools, gemini.Options{})
	default:
		writeError(w, r, invalid("format", "format must be mcp, openai, anthropic or gemini, not %.40q", format))
		return
	}
	writeAnswer(w, http.StatusOK, listOf(list))
}

// callTool answers POST /v1/tools/{name}: it makes one call through all stages. A pending call
// has status 202.
func (a *API) callTool(w http.ResponseWriter, r *http.Request) {
	args := []byte(`{}`)
	err := readMembers(w, r, map[string]func([]byte) error{"arguments": func(v []byte) error {
		_, err := jsonrpc.Members(v)
		args = v
		return err
	}})
	if err != nil {
		writeError(w, r, err)
		return
	}
	name := r.PathValue("name")
	t, ok := a.cfg.Tools.Get(r.Context(), name)
	if !ok {
		writeError(w, r, toolerr.New(toolerr.ToolNotFound, "no tool %.100q; GET /v1/tools lists the tools", name))
		return
	}
	params := append(append(jsonrpc.AppendString([]byte(`{"name":`), t.Name), `,"arguments":`...), args...)
	res, err := a.cfg.Call(r.Context(), &call.Request{Tool: t, Params: append(params, '}'), Caller: callerOf(r, "")})
	var pending *call.PendingError
	switch {
	case errors.As(err, &pending):
		writeAnswer(w, http.StatusAccepted, map[string]any{"status": call.StatusPending, "pending": pending.Pending})
	case err != nil:
		writeError(w, r, err)
	default:
		writeJSON(w, http.StatusOK, res.Raw)
	}
}
