package mcpkittest

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Result is the decoded result of a tool call.
type Result struct {
	Text       string         // texts of the content, joined by newlines
	Meta       map[string]any // _meta["toolroom/result"]
	Structured map[string]any // structuredContent
	IsError    bool
	Code       string          // _meta["toolroom/code"]
	Images     []string        // their MIME types
	Raw        json.RawMessage // the result as received
}

// Call calls a tool and waits for its result. args is the arguments object: a
// map or struct, or JSON as string or json.RawMessage; nil sends none. A
// JSON-RPC error fails the test; a result with isError does not.
func (c *Client) Call(name string, args any) Result {
	c.t.Helper()
	answer := c.Request("tools/call", CallParams(name, args))
	if answer.Error != nil {
		c.t.Fatalf("%s %v: %v", name, args, answer.Error)
	}
	result, err := ParseResult(answer.Result)
	if err != nil {
		c.t.Fatalf("%s %v: %v", name, args, err)
	}
	return result
}

// CallParams returns the params of tools/call; args is as for Client.Call.
func CallParams(name string, args any) map[string]any {
	params := map[string]any{"name": name}
	switch args := args.(type) {
	case nil:
	case string:
		params["arguments"] = json.RawMessage(args)
	default:
		params["arguments"] = args
	}
	return params
}

// ParseResult decodes the result of tools/call. It returns an error if raw does not
// have the form of a result.
func ParseResult(raw json.RawMessage) (Result, error) {
	var wire struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
			MIME string `json:"mimeType"`
		} `json:"content"`
		Structured map[string]any `json:"structuredContent"`
		IsError    bool           `json:"isError"`
		Meta       struct {
			Result map[string]any `json:"toolroom/result"`
			Code   string         `json:"toolroom/code"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return Result{}, fmt.Errorf("not a tool's result: %w: %.200s", err, raw)
	}
	result := Result{Meta: wire.Meta.Result, Structured: wire.Structured, IsError: wire.IsError, Code: wire.Meta.Code, Raw: raw}
	var texts []string
	for _, content := range wire.Content {
		switch content.Type {
		case "text":
			texts = append(texts, content.Text)
		case "image":
			result.Images = append(result.Images, content.MIME)
		}
	}
	result.Text = strings.Join(texts, "\n")
	return result, nil
}
