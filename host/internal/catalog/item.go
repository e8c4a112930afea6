package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// An Item is one entry of a list. It is immutable.
type Item struct {
	Kind     call.ListKind
	Name     string // as served: a name, a URI, or a URI template
	Server   string
	Original string // the server's own name, URI or template

	// Definition is the server's entry, unchanged except for the configured name and
	// description.
	Definition json.RawMessage

	Tool *call.Tool // nil for other kinds than tools

	received    json.RawMessage
	aliasOf     AliasTarget // see SourceConfig
	completed   bool        // the target was looked up
	targetNames []string    // names of the target
	span        [2]int      // position of the name's value in Definition
	ui          bool        // its _meta may refer to a user interface
}

// nameMember returns the member that identifies an item of the kind.
func nameMember(kind call.ListKind) string {
	switch kind {
	case call.Resources:
		return "uri"
	case call.Templates:
		return "uriTemplate"
	}
	return "name"
}

// newItem returns the item for a server's definition. An error together with an item
// says which parts of the definition clients could not read; they are not served.
func newItem(server SourceConfig, kind call.ListKind, definition json.RawMessage) (*Item, error) {
	of := server.Source.Name()
	members, err := jsonrpc.Members(definition)
	if err != nil {
		return nil, fmt.Errorf("server %s: an entry of its %s is malformed: %w", of, kind, err)
	}
	item := &Item{Kind: kind, Server: of, received: definition, aliasOf: server.AliasOf, targetNames: server.TargetNames}
	definition, lost := sanitize(kind, definition, members)
	if !bytes.Equal(definition, item.received) {
		if members, err = jsonrpc.Members(definition); err != nil {
			return nil, fmt.Errorf("server %s: an entry of its %s is malformed: %w", of, kind, err)
		}
	}
	item.Definition = definition
	for _, m := range members {
		switch {
		case m.Name == nameMember(kind):
			if m.Value[0] != '"' || json.Unmarshal(m.Value, &item.Original) != nil || item.Original == "" {
				return nil, fmt.Errorf("server %s: the %s of an entry of its %s is %s, not a string", of, m.Name, kind, m.Value)
			}
			item.span = [2]int{m.Start, m.End}
		case m.Name == "_meta":
			item.ui = mayNameUI(m.Value)
		}
	}
	if item.Original == "" {
		return nil, fmt.Errorf("server %s: an entry of its %s has no %s", of, kind, nameMember(kind))
	}
	// Clients would read it differently, and only one reading would be pinned.
	if kind == call.Tools && !jsonrpc.Unambiguous(item.received) {
		return nil, fmt.Errorf("server %s: the definition of tool %s has a duplicate member, or is nested too deep", of, item.Original)
	}
	if len(lost) > 0 {
		err = fmt.Errorf("server %s: entry %[3]s of its %[2]s has parts that clients cannot read, %[4]s; it is served without them", of, kind, item.Original, strings.Join(lost, ", "))
	}
	switch kind {
	case call.Resources, call.Templates:
		item.Name = item.Original
		return item, err
	}
	item.rename(server.servedName(item.Original, kind))
	if kind == call.Tools {
		if text, ok := server.Filter.Describe[item.Original]; ok {
			described, fault := jsonrpc.SetMember(item.Definition, "description", jsonrpc.AppendString(nil, text))
			if fault != nil {
				return nil, fmt.Errorf("server %s: tool %s: %w", of, item.Original, fault)
			}
			item.Definition = described
		}
		item.Tool = &call.Tool{Name: item.Name, Server: of, Original: item.Original, Definition: item.Definition, Traits: callTraits(members)}
		if plain := ServedName(of, item.Original, server.Plain); plain != item.Name {
			item.Tool.Unrenamed = plain
		}
	}
	return item, err
}

// names returns the names that a pattern can match: the served name, and the one
// without renaming in the configuration.
func (i *Item) names() []string {
	if i.Tool == nil || i.Tool.Unrenamed == "" {
		return []string{i.Name}
	}
	return []string{i.Name, i.Tool.Unrenamed}
}

// rename replaces the name in the definition.
func (i *Item) rename(name string) {
	i.Name = name
	if name != i.Original {
		i.Definition = slices.Concat(i.Definition[:i.span[0]], json.RawMessage(jsonrpc.AppendString(nil, name)), i.Definition[i.span[1]:])
	}
}

// qualified returns the item under the URI that always leads to its server.
func (i *Item) qualified() *Item {
	q := *i
	q.rename(qualify(i.Server, i.Original))
	return &q
}

// uriScheme is the scheme of qualified URIs.
const uriScheme = "toolroom:"

// qualify returns the URI under which a resource is served whose own URI another server
// has, too.
func qualify(server, uri string) string {
	if strings.HasPrefix(uri, uiScheme) {
		return qualifyUI(server, uri)
	}
	return uriScheme + url.PathEscape(server) + "/" + uri
}

// unqualify is the inverse of qualify. ok is false for a URI that qualify did not make.
func unqualify(name string) (server, uri string, ok bool) {
	inner := ""
	rest, ok := strings.CutPrefix(name, uriScheme)
	if !ok {
		if rest, ok = strings.CutPrefix(name, uiQualified); !ok {
			return "", "", false
		}
		inner = uiScheme
	}
	escaped, uri, ok := strings.Cut(rest, "/")
	server, err := url.PathUnescape(escaped)
	return server, inner + uri, ok && err == nil && uri != ""
}
