package httpapi

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// openAPIDocument returns the OpenAPI description of the API.
func (a *API) openAPIDocument() []byte {
	paths := map[string]map[string]any{}
	for _, r := range a.routes {
		path := strings.ReplaceAll(r.path, "...}", "}")
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		paths[path][strings.ToLower(r.method)] = r.operation()
	}
	text, err := jsonrpc.Marshal(map[string]any{
		"openapi": "3.1.0",
		"info": map[string]any{
			"title": "Toolroom", "version": shownVersion(a.cfg.Version), "license": map[string]any{"name": "MIT", "identifier": "MIT"},
			"description": "Models that use the host's tools, for clients of OpenAI's and Anthropic's APIs; also tools, sessions, artifacts and approvals.",
		},
		"servers":  []any{map[string]any{"url": "/"}},
		"security": []any{map[string]any{"token": []any{}}, map[string]any{"key": []any{}}},
		"paths":    paths,
		"components": map[string]any{
			"schemas": schemas(),
			"securitySchemes": map[string]any{
				"token": map[string]any{"type": "http", "scheme": "bearer", "description": "the token that serve prints"},
				"key":   map[string]any{"type": "apiKey", "in": "header", "name": "x-api-key", "description": "the same token, as Anthropic's clients send it"},
			},
		},
	})
	if err != nil { // impossible: the tests encode everything here
		return []byte(`{}`)
	}
	return text
}

// shownVersion returns the version of the API's description, devel for "".
func shownVersion(v string) string {
	if v == "" {
		return "devel"
	}
	return v
}

// operation returns the description of a route for the OpenAPI document.
func (r route) operation() map[string]any {
	responses := map[string]any{strconv.Itoa(r.status): r.successResponse()}
	if r.id == "callTool" {
		responses["202"] = withSchema("the call needs approval and is pending", "PendingCall")
	}
	failures := append([]int{400, 401, 403, 429}, r.errors...)
	if r.body != "" {
		failures = append(failures, 408, 413)
	}
	if r.body != "" && r.body != anyBytes {
		failures = append(failures, 415)
	}
	shape := "Error"
	if strings.HasPrefix(r.path, "/v1/messages") {
		shape = "AnthropicError"
	}
	for _, status := range failures {
		responses[strconv.Itoa(status)] = withSchema(strings.ToLower(http.StatusText(status)), shape)
	}
	op := map[string]any{"operationId": r.id, "tags": []string{r.tag}, "summary": r.summary, "responses": responses}
	if list := r.parameters(); len(list) > 0 {
		op["parameters"] = list
	}
	if r.open {
		op["security"] = []any{}
	}
	switch r.body {
	case "":
	case anyBytes:
		op["requestBody"] = map[string]any{"required": true, "content": map[string]any{"*/*": map[string]any{"schema": typed("string", "format", "binary")}}}
	default:
		op["requestBody"] = map[string]any{"required": true, "content": content("application/json", r.body)}
	}
	return op
}

// successResponse returns the description of the successful response.
func (r route) successResponse() map[string]any {
	if r.answer == anyBytes {
		return map[string]any{"description": "the file", "content": map[string]any{"*/*": map[string]any{"schema": typed("string", "format", "binary")}}}
	}
	good := withSchema("success", r.answer)
	if r.streams {
		good["content"].(map[string]any)["text/event-stream"] = map[string]any{"schema": typed("string", "description", "server-sent events in the vendor's format, if stream is true")}
	}
	return good
}

// parameters returns the descriptions of the parameters in the path and the query, and
// of the events header if the route streams.
func (r route) parameters() []any {
	var list []any
	for _, part := range strings.Split(r.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			list = append(list, map[string]any{
				"name": strings.TrimRight(name, ".}"), "in": "path", "required": true, "schema": typed("string"),
			})
		}
	}
	for _, q := range r.query {
		list = append(list, map[string]any{"name": q.name, "in": "query", "description": q.what, "schema": typed("string")})
	}
	if r.streams {
		list = append(list, map[string]any{"name": eventsHeader, "in": "header", "description": "as x_events", "schema": typed("boolean")})
	}
	return list
}

// withSchema returns the description of a response whose JSON body has a named schema.
func withSchema(description, schema string) map[string]any {
	return map[string]any{"description": description, "content": content("application/json", schema)}
}

// content returns the content of a body with a media type and a named schema.
func content(media, schema string) map[string]any {
	return map[string]any{media: map[string]any{"schema": ref(schema)}}
}

// ref returns a reference to a named schema.
func ref(schema string) map[string]any {
	return map[string]any{"$ref": "#/components/schemas/" + schema}
}

// typed returns a schema of a type. more holds names and values of further members.
func typed(kind string, more ...any) map[string]any {
	s := map[string]any{"type": kind}
	for i := 0; i+1 < len(more); i += 2 {
		s[more[i].(string)] = more[i+1]
	}
	return s
}
