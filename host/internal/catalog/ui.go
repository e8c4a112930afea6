package catalog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// Clients recognize a user interface by the scheme of its URI, so a URI that two
// servers use keeps its scheme: the first server keeps the URI, the other's becomes
// ui://toolroom/SERVER/REST. The tools of the other server refer to that URI.
const (
	uiScheme    = "ui://"
	uiQualified = uiScheme + "toolroom/"
)

// qualifyUI returns a ui:// URI that names its server, for a URI that several servers
// use.
func qualifyUI(server, uri string) string {
	return uiQualified + url.PathEscape(server) + "/" + uri[len(uiScheme):]
}

// owners maps a ui:// URI to its server: the first one that lists it or has a tool
// that refers to it.
type owners map[string]string

// ownersOf returns the owner of each ui:// URI: the first server, in list order, that
// lists it or refers to it.
func ownersOf(all map[call.ListKind][]*Item) owners {
	rank := map[string]int{}
	for _, kind := range kinds() {
		for _, item := range all[kind] {
			if _, ok := rank[item.Server]; !ok {
				rank[item.Server] = len(rank)
			}
		}
	}
	o := owners{}
	claim := func(uri, server string) {
		if first, ok := o[uri]; !ok || rank[server] < rank[first] {
			o[uri] = server
		}
	}
	for _, kind := range []call.ListKind{call.Resources, call.Templates} {
		for _, item := range all[kind] {
			if strings.HasPrefix(item.Name, uiScheme) {
				claim(item.Name, item.Server)
			}
		}
	}
	for _, item := range all[call.Tools] {
		if meta := item.uiMeta(); meta != nil {
			replaceUIURIs(meta, 0, func(uri string) string {
				claim(uri, item.Server)
				return uri
			})
		}
	}
	return o
}

// mayNameUI reports whether a _meta may refer to a user interface, perhaps with escapes.
func mayNameUI(meta json.RawMessage) bool {
	return bytes.Contains(meta, []byte("ui:")) || bytes.IndexByte(meta, '\\') >= 0
}

// uiMeta returns the _meta of a tool that may refer to a user interface, or nil.
func (i *Item) uiMeta() json.RawMessage {
	if i.Tool == nil || !i.ui {
		return nil
	}
	return jsonrpc.MemberOf(i.Definition, "_meta")
}

// withServedUI returns a tool whose _meta refers to user interfaces by their served URIs:
// the item itself, or a changed copy.
func (i *Item) withServedUI(o owners) *Item {
	meta := i.uiMeta()
	if meta == nil {
		return i
	}
	changed := false
	meta = replaceUIURIs(meta, 0, func(uri string) string {
		if o[uri] == i.Server {
			return uri
		}
		changed = true
		return qualifyUI(i.Server, uri)
	})
	if !changed {
		return i
	}
	definition, err := jsonrpc.SetMember(i.Definition, "_meta", meta)
	if err != nil {
		return i
	}
	out, tool := *i, *i.Tool
	out.Definition, tool.Definition = definition, definition
	out.Tool = &tool
	return &out
}

// maxMetaDepth bounds the depth at which _meta is searched.
const maxMetaDepth = 16

// replaceUIURIs returns JSON in which every string that is a ui:// URI is replaced by the
// result of to. All other bytes stay unchanged.
func replaceUIURIs(raw json.RawMessage, depth int, to func(uri string) string) json.RawMessage {
	if depth > maxMetaDepth || len(raw) == 0 {
		return raw
	}
	switch raw[0] {
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil || !strings.HasPrefix(text, uiScheme) || strings.HasPrefix(text, uiQualified) {
			return raw
		}
		if now := to(text); now != text {
			return jsonrpc.AppendString(nil, now)
		}
	case '{':
		members, err := jsonrpc.Members(raw)
		if err != nil {
			return raw
		}
		out, end := []byte{}, 0
		for _, m := range members {
			out = append(append(out, raw[end:m.Start]...), replaceUIURIs(m.Value, depth+1, to)...)
			end = m.End
		}
		return append(out, raw[end:]...)
	case '[':
		items, err := jsonrpc.Items(raw)
		if err != nil {
			return raw
		}
		out := []byte{'['}
		for n, item := range items {
			if n > 0 {
				out = append(out, ',')
			}
			out = append(out, replaceUIURIs(item, depth+1, to)...)
		}
		return append(out, ']')
	}
	return raw
}
