// Package mcp writes and reads calls of tools and their results as MCP has
// them (tools/call). Definitions are convert.Tool's own form.
package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeCall writes the params of tools/call. The id is the JSON-RPC
// request's business.
func EncodeCall(c *llm.ToolCall) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	arguments := c.Arguments("", &losses)
	return tree.Obj("name", tree.Str(c.Name), "arguments", tree.Raw(arguments)), losses
}

// DecodeCall reads the params of tools/call.
func DecodeCall(params json.RawMessage, id string) (*llm.ToolCall, llm.Losses, error) {
	v, err := tree.Parse(params)
	if err != nil {
		return nil, nil, fmt.Errorf("params of tools/call: %w", err)
	}
	c := &llm.ToolCall{ID: id, Name: v.Take("name").Str(), Args: json.RawMessage(`{}`)}
	if c.Name == "" {
		return nil, nil, fmt.Errorf("params of tools/call have no name")
	}
	if v.Get("arguments").Is(tree.Object) {
		c.Args = v.Take("arguments").Whole()
	}
	var losses llm.Losses
	losses.Unread(v)
	return c, losses, nil
}

// EncodeResult writes a result of tools/call. Its id and name are the
// request's.
func EncodeResult(r *llm.ToolResult) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	content := tree.List()
	for i, p := range r.Content {
		at := llm.Index("/content", i)
		if p.Signature != nil {
			losses.Lose(at+"/signature", "MCP's results are not signed")
		}
		switch {
		case p.Type == llm.Text:
			content.Items = append(content.Items, llm.TextBlock(p.Text))
		case p.Type == llm.Image:
			content.Items = append(content.Items, image(p.Media, at, &losses))
		case p.Type == llm.Opaque && p.By == llm.MCP:
			content.Items = append(content.Items, tree.Raw(p.Raw))
		default:
			losses.Lose(at, "MCP's results have no "+string(p.Type))
		}
	}
	out := tree.Obj("content", content)
	if r.Structured != nil {
		out.Set("structuredContent", tree.Raw(r.Structured))
	}
	if r.IsError {
		out.Set("isError", tree.Boolean(true))
	}
	for _, m := range r.Others {
		out.Set(m.Name, tree.Raw(m.Value))
	}
	return out, losses
}

func image(m *llm.Media, at string, losses *llm.Losses) *tree.Value {
	if m.Detail != "" {
		losses.Lose(at+"/media/detail", "MCP has no such field")
	}
	if m.Data == "" {
		link := tree.Obj("type", tree.Str("resource_link"), "uri", tree.Str(m.URL), "name", tree.Str("image"))
		if mime := m.Type(); mime != "" {
			link.Set("mimeType", tree.Str(mime))
		}
		losses.Carry(at, "an image URL became a resource link", llm.Value(llm.Part{Type: llm.Opaque, By: llm.MCP, Raw: link.JSON()}))
		return link
	}
	if m.URL != "" {
		losses.Lose(at+"/media/url", "the image data was sent instead")
	}
	if m.MIME == "" {
		losses.Carry(at+"/media/mime", "detected from the content", tree.Str(m.Type()))
	}
	return tree.Obj("type", tree.Str("image"), "data", tree.Str(m.Data), "mimeType", tree.Str(m.Type()))
}

// DecodeResult reads a result of tools/call.
func DecodeResult(result json.RawMessage, id, name string) (*llm.ToolResult, llm.Losses, error) {
	v, err := tree.Parse(result)
	if err != nil {
		return nil, nil, fmt.Errorf("the result of %s: %w", name, err)
	}
	if !v.Is(tree.Object) {
		return nil, nil, fmt.Errorf("the result of %s is not an object", name)
	}
	r := &llm.ToolResult{ID: id, Name: name}
	for _, m := range v.Members {
		switch {
		case m.Name == "content" && m.Value.Is(tree.Array):
			for _, item := range v.Take("content").List() {
				r.Content = append(r.Content, block(item))
			}
		case m.Name == "structuredContent" && m.Value.Kind != tree.Null:
			r.Structured = v.Take(m.Name).Whole()
		case m.Name == "isError" && m.Value.Is(tree.Bool):
			r.IsError = *v.Take(m.Name).Flag()
		case m.Value.Kind != tree.Null:
			r.Others = append(r.Others, llm.Member{Name: m.Name, Value: v.Take(m.Name).Whole()})
		}
	}
	var losses llm.Losses
	losses.Unread(v)
	return r, losses, nil
}

func block(v *tree.Value) llm.Part {
	kind := v.Get("type")
	plain := func(members ...string) bool { // and nothing besides: annotations, _meta
		if len(v.Members) != len(members)+1 {
			return false
		}
		for _, name := range members {
			if !v.Get(name).Is(tree.String) {
				return false
			}
		}
		return true
	}
	switch {
	case kind.Is(tree.String) && kind.Text == "text" && plain("text"):
		v.Take("type").Str()
		return llm.Part{Type: llm.Text, Text: v.Take("text").Str()}
	case kind.Is(tree.String) && kind.Text == "image" && plain("data", "mimeType"):
		v.Take("type").Str()
		return llm.Part{Type: llm.Image, Media: &llm.Media{Data: v.Take("data").Str(), MIME: v.Take("mimeType").Str()}}
	}
	return llm.Part{Type: llm.Opaque, By: llm.MCP, Raw: v.Whole()}
}
