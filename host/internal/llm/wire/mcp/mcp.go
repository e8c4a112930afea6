// Package mcp encodes and decodes tool calls and their results in MCP's format
// (tools/call). llm.Tool has the JSON form of MCP's definitions.
package mcp

import (
	"encoding/json"
	"fmt"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// EncodeCall encodes the params of tools/call. The call's ID belongs to the JSON-RPC
// request.
func EncodeCall(c *llm.ToolCall) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	arguments := c.ArgumentsObject("", &losses)
	return tree.Obj("name", tree.Str(c.Name), "arguments", tree.Raw(arguments)), losses
}

// DecodeCall decodes the params of tools/call into a call with this ID. Arguments that are
// not an object become {}. It fails without a name.
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
		c.Args = v.Take("arguments").TakeRaw()
	}
	var losses llm.Losses
	losses.AddUnread(v)
	return c, losses, nil
}

// EncodeResult encodes a result of tools/call. Its ID and name belong to the request.
func EncodeResult(r *llm.ToolResult) (*tree.Value, llm.Losses) {
	var losses llm.Losses
	content := tree.List()
	for i, p := range r.Content {
		at := llm.AppendIndex("/content", i)
		if p.Signature != nil {
			losses.AddLost(at+"/signature", "MCP's results are not signed")
		}
		switch {
		case p.Type == llm.TextPart:
			content.Items = append(content.Items, llm.TextBlock(p.Text))
		case p.Type == llm.ImagePart:
			content.Items = append(content.Items, encodeImage(p.Media, at, &losses))
		case p.Type == llm.OpaquePart && p.Vendor == llm.MCP:
			content.Items = append(content.Items, tree.Raw(p.Raw))
		default:
			losses.AddLost(at, "MCP's results have no "+string(p.Type))
		}
	}
	out := tree.Obj("content", content)
	if r.Structured != nil {
		out.Set("structuredContent", tree.Raw(r.Structured))
	}
	if r.IsError {
		out.Set("isError", tree.Boolean(true))
	}
	for _, m := range r.ExtraMembers {
		out.Set(m.Name, tree.Raw(m.Value))
	}
	return out, losses
}

// encodeImage returns an image as an MCP content block: image with its data, or
// resource_link to its URL.
func encodeImage(m *llm.Media, at string, losses *llm.Losses) *tree.Value {
	if m.Detail != "" {
		losses.AddLost(at+"/media/detail", "MCP has no such field")
	}
	if m.Data == "" {
		link := tree.Obj("type", tree.Str("resource_link"), "uri", tree.Str(m.URL), "name", tree.Str("image"))
		if mime := m.Type(); mime != "" {
			link.Set("mimeType", tree.Str(mime))
		}
		losses.AddEquivalent(at, "an image URL became a resource link", llm.PartsJSON(llm.Part{Type: llm.OpaquePart, Vendor: llm.MCP, Raw: link.JSON()}))
		return link
	}
	if m.URL != "" {
		losses.AddLost(at+"/media/url", "the image data was sent instead")
	}
	if m.MIME == "" {
		losses.AddEquivalent(at+"/media/mime", "detected from the content", tree.Str(m.Type()))
	}
	return tree.Obj("type", tree.Str("image"), "data", tree.Str(m.Data), "mimeType", tree.Str(m.Type()))
}

// DecodeResult decodes a result of tools/call into the result of the call id of the tool
// name. It fails if the result is not an object.
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
			for _, item := range v.Take("content").TakeItems() {
				r.Content = append(r.Content, decodeBlock(item))
			}
		case m.Name == "structuredContent" && m.Value.Kind != tree.Null:
			r.Structured = v.Take(m.Name).TakeRaw()
		case m.Name == "isError" && m.Value.Is(tree.Bool):
			r.IsError = *v.Take(m.Name).Flag()
		case m.Value.Kind != tree.Null:
			r.ExtraMembers = append(r.ExtraMembers, llm.Member{Name: m.Name, Value: v.Take(m.Name).TakeRaw()})
		}
	}
	var losses llm.Losses
	losses.AddUnread(v)
	return r, losses, nil
}

// decodeBlock returns an MCP content block as a part. Blocks of other types than text and
// image, and blocks with further members, are kept as they are.
func decodeBlock(v *tree.Value) llm.Part {
	kind := v.Get("type")
	plain := func(members ...string) bool { // and no others, such as annotations or _meta
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
		return llm.Part{Type: llm.TextPart, Text: v.Take("text").Str()}
	case kind.Is(tree.String) && kind.Text == "image" && plain("data", "mimeType"):
		v.Take("type").Str()
		return llm.Part{Type: llm.ImagePart, Media: &llm.Media{Data: v.Take("data").Str(), MIME: v.Take("mimeType").Str()}}
	}
	return llm.Part{Type: llm.OpaquePart, Vendor: llm.MCP, Raw: v.TakeRaw()}
}
