package upstream

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/internal/visible"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A client shows what a server asks under the host's name. So the host says
// which server asks, in a first line that no server can leave out or imitate:
// each line of the server's own words is marked.

// codeURLNeeded is the JSON-RPC error code of a request to open web pages
// (MCP 2025-11-25, URLElicitationRequiredError).
const codeURLNeeded = -32042

// named returns the params of a question with the name of the server in them.
func (c *conn) named(method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "elicitation/create":
		return c.namedForm(params)
	case "sampling/createMessage":
		return c.namedPrompt(params)
	}
	return params, nil
}

func (c *conn) namedForm(params json.RawMessage) (json.RawMessage, error) {
	var form struct {
		Message string `json:"message"`
		Mode    string `json:"mode"`
		URL     string `json:"url"`
	}
	if err := exactly(params, &form, "message", "mode", "url"); err != nil {
		return nil, err
	}
	head := "The server " + quotedName(c.cfg.Name) + " asks"
	if form.Mode == "url" || form.URL != "" {
		host, err := hostOf(form.URL)
		if err != nil {
			return nil, err
		}
		head += " you to open a page at " + host
	}
	return with(params, "message", head+". These are its words, not the host's:\n"+quoteLines(form.Message))
}

// namedPrompt names the server in the system prompt of a sampling request,
// which clients show to the user with the messages.
func (c *conn) namedPrompt(params json.RawMessage) (json.RawMessage, error) {
	var request struct {
		System string `json:"systemPrompt"`
	}
	if err := exactly(params, &request, "systemPrompt"); err != nil {
		return nil, err
	}
	head := "(The server " + quotedName(c.cfg.Name) + " asks for this, not the host.)"
	if request.System != "" {
		head += "\n\n" + request.System
	}
	return with(params, "systemPrompt", head)
}

// namedInputs names the server in the questions of a result that asks for
// input (MCP 2026-07-28).
func (c *conn) namedInputs(result json.RawMessage) (json.RawMessage, error) {
	members, err := jsonrpc.Members(result)
	if err != nil {
		return nil, toolerr.New(toolerr.ProtocolError, "the server's result is malformed: %w", err)
	}
	for _, m := range members {
		if m.Name != "inputRequests" || isNull(m.Value) {
			continue
		}
		asked, err := jsonrpc.Members(m.Value)
		if err != nil {
			return nil, toolerr.New(toolerr.ProtocolError, "the server's inputRequests are malformed: %w", err)
		}
		out := []byte{'{'}
		for i, q := range asked {
			var question struct {
				Method string          `json:"method"`
				Params json.RawMessage `json:"params"`
			}
			if err := json.Unmarshal(q.Value, &question); err != nil {
				return nil, toolerr.New(toolerr.ProtocolError, "the server's question %q is malformed: %w", q.Name, err)
			}
			value := q.Value
			if question.Params != nil {
				params, err := c.named(question.Method, question.Params)
				if err != nil {
					return nil, err
				}
				if value, err = jsonrpc.SetMember(q.Value, "params", params); err != nil {
					return nil, err
				}
			}
			if i > 0 {
				out = append(out, ',')
			}
			out = appendMember(out, q.Name, value)
		}
		return jsonrpc.SetMember(result, "inputRequests", append(out, '}'))
	}
	return result, nil
}

// nameVisits names the server in an error that asks for the visit of pages.
// An error that cannot be rewritten loses its data.
func (c *conn) nameVisits(e *call.MCPError) {
	if e.Code != codeURLNeeded {
		return
	}
	var object struct {
		Data struct {
			Elicitations []json.RawMessage `json:"elicitations"`
		} `json:"data"`
	}
	err := json.Unmarshal(e.Object, &object)
	out := []byte{'['}
	for i, one := range object.Data.Elicitations {
		var form json.RawMessage
		if err == nil {
			form, err = c.namedForm(one)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, form...)
	}
	if err != nil {
		e.Object = append(jsonrpc.AppendString(fmt.Appendf(nil, `{"code":%d,"message":`, e.Code), e.Message), '}')
		return
	}
	data := append(append([]byte(`{"elicitations":`), out...), "]}"...)
	if raw, err := jsonrpc.SetMember(e.Object, "data", data); err == nil {
		e.Object = raw
	}
}

// exactly reads the named members of an object. Names in another case are an
// error: the client could take those for the members that were read.
func exactly(object json.RawMessage, into any, names ...string) error {
	members, err := jsonrpc.Members(object)
	if err == nil {
		err = json.Unmarshal(object, into)
	}
	if err != nil {
		return toolerr.New(toolerr.ProtocolError, "the server's question is malformed: %w", err)
	}
	for _, m := range members {
		for _, name := range names {
			if m.Name != name && strings.EqualFold(m.Name, name) {
				return toolerr.New(toolerr.ProtocolError, "the server's question has a member %q; write %s", m.Name, name)
			}
		}
	}
	return nil
}

// with replaces a text member of an object.
func with(object json.RawMessage, name, text string) (json.RawMessage, error) {
	return jsonrpc.SetMember(object, name, jsonrpc.AppendString(nil, text))
}

func quotedName(name string) string { return strconv.QuoteToASCII(name) }

// hostOf is the host of a web address, whole; not ASCII, it is escaped, for it
// may look like another.
func hostOf(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" {
		return "", toolerr.New(toolerr.ProtocolError, "the server asks to open a page without an http or https address")
	}
	host := strconv.QuoteToASCII(u.Host)
	if u.Scheme == "http" {
		host += " (not encrypted)"
	}
	return host, nil
}

// quoteLines is a server's text with hidden characters escaped, long runs of
// blanks counted, and "> " before each line.
func quoteLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(visible.CollapseBlanks(visible.Text(text))) {
		b.WriteString("> " + line)
	}
	return b.String()
}
