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

// A client shows a server's questions under the host's name. So the host names the
// server in a first line that no server can omit or imitate: it marks each line of the
// server's own text.

// codeURLNeeded is the JSON-RPC error code of a request to open web pages (MCP
// 2025-11-25, URLElicitationRequiredError).
const codeURLNeeded = -32042

// addServerName returns the params of a question with the server's name added, so that the
// user sees who asks. It returns an error for malformed params.
func (c *conn) addServerName(method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case "elicitation/create":
		return c.addServerNameToForm(params)
	case "sampling/createMessage":
		return c.addServerNameToSystemPrompt(params)
	}
	return params, nil
}

// addServerNameToForm returns the params of an elicitation whose message begins with the
// server's name. It returns an error if they are ambiguous or the URL has no host.
func (c *conn) addServerNameToForm(params json.RawMessage) (json.RawMessage, error) {
	var form struct {
		Message string `json:"message"`
		Mode    string `json:"mode"`
		URL     string `json:"url"`
	}
	if err := decodeExactly(params, &form, "message", "mode", "url"); err != nil {
		return nil, err
	}
	head := "The server " + quotedName(c.cfg.Name) + " asks"
	if form.Mode == "url" || form.URL != "" {
		host, err := shownHost(form.URL)
		if err != nil {
			return nil, err
		}
		head += " you to open a page at " + host
	}
	return withText(params, "message", head+". These are its words, not the host's:\n"+quoteLines(form.Message))
}

// addServerNameToSystemPrompt adds the server's name to the system prompt of a sampling
// request, which clients show to the user with the messages. It returns an error for
// malformed params.
func (c *conn) addServerNameToSystemPrompt(params json.RawMessage) (json.RawMessage, error) {
	var request struct {
		System string `json:"systemPrompt"`
	}
	if err := decodeExactly(params, &request, "systemPrompt"); err != nil {
		return nil, err
	}
	head := "(The server " + quotedName(c.cfg.Name) + " asks for this, not the host.)"
	if request.System != "" {
		head += "\n\n" + request.System
	}
	return withText(params, "systemPrompt", head)
}

// addServerNameToInputs adds the server's name to the questions of a result with input_required
// (MCP 2026-07-28).
func (c *conn) addServerNameToInputs(result json.RawMessage) (json.RawMessage, error) {
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
				params, err := c.addServerName(question.Method, question.Params)
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

// addServerNameToURLError adds the server's name to an error that asks the user to open pages. If
// the error cannot be changed, it loses its data.
func (c *conn) addServerNameToURLError(e *call.MCPError) {
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
			form, err = c.addServerNameToForm(one)
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

// decodeExactly decodes an object. It returns an error for a member whose name differs from
// one of names only in letter case: the client could read that one instead.
func decodeExactly(object json.RawMessage, into any, names ...string) error {
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

// withText returns the object with a text member replaced.
func withText(object json.RawMessage, name, text string) (json.RawMessage, error) {
	return jsonrpc.SetMember(object, name, jsonrpc.AppendString(nil, text))
}

// quotedName returns a server's name in quotes, with other than ASCII characters
// escaped.
func quotedName(name string) string { return strconv.QuoteToASCII(name) }

// shownHost returns the host of a web address, complete. Characters other than ASCII are
// escaped, since they may look like others. It returns PROTOCOL_ERROR for other addresses
// than http and https.
func shownHost(address string) (string, error) {
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

// quoteLines returns a server's text with "> " before each line. It escapes invisible
// characters and shortens long runs of blanks.
func quoteLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(visible.CollapseBlanks(visible.Text(text))) {
		b.WriteString("> " + line)
	}
	return b.String()
}
