package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
)

// maxName is the pattern that clients accept (OpenAI, Bedrock): ^[a-zA-Z0-9_-]{1,64}$.
const maxName = 64

// servedName returns the name under which the entry's tool or prompt own is served: as
// renamed in the configuration, after the entry's prefix, or that of ServedName.
func (e SourceConfig) servedName(own string, kind call.ListKind) string {
	server := e.Source.Name()
	if renamed := e.Filter.Rename[own]; renamed != "" && kind == call.Tools {
		return cleanName(renamed, server, own, false)
	}
	if e.Prefix != nil {
		return cleanName(*e.Prefix+own, server, own, false)
	}
	return ServedName(server, own, e.Plain)
}

// Names returns the names under which patterns match a tool that its source calls own: the
// served name, the name that ServedName gives it if that is another, and, for an alias, the
// names of its target.
func (e SourceConfig) Names(own string) []string {
	names := []string{e.servedName(own, call.Tools)}
	if plain := ServedName(e.Source.Name(), own, e.Plain); plain != names[0] {
		names = append(names, plain)
	}
	return append(names, e.TargetNames...)
}

// MayServe reports whether the entry may serve a tool under a name, as far as
// the name tells.
func (e SourceConfig) MayServe(name string) bool {
	switch {
	case e.renames(name):
		return true
	case e.Plain:
		return !strings.Contains(name, "__")
	}
	prefix := cleanName(e.prefix()+".", "", "", false) // marked, and so cut as names are
	return strings.HasPrefix(name, prefix[:len(prefix)-len("_00000000")-1])
}

// renames reports whether the configuration gives a tool this served name.
func (e SourceConfig) renames(name string) bool {
	for own := range e.Filter.Rename {
		if e.servedName(own, call.Tools) == name {
			return true
		}
	}
	return false
}

// prefix returns the prefix of the served names, "" without one.
func (e SourceConfig) prefix() string {
	switch {
	case e.Plain:
		return ""
	case e.Prefix != nil:
		return *e.Prefix
	}
	return e.Source.Name() + "__"
}

// ServedName returns the name a tool is served under, which depends on the
// server's and the tool's names alone: plain, or SERVER__TOOL. A name that is
// too long, has characters that clients refuse, or could belong to another pair
// ends with 8 hex digits of the SHA-256 of the pair.
func ServedName(server, tool string, plain bool) string {
	if plain {
		return cleanName(tool, server, tool, false)
	}
	// The first "__" of a name ends its server's part.
	ambiguous := strings.Contains(server, "__") || strings.HasSuffix(server, "_")
	return cleanName(server+"__"+tool, server, tool, ambiguous)
}

// cleanName returns name as it is if it has at most maxName letters, digits, _ and -, and
// mark is false. Otherwise it replaces other characters and appends a hash of server and
// tool.
func cleanName(name, server, tool string, mark bool) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if clean == name && len(name) <= maxName && !mark {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	digits := "_" + hex.EncodeToString(sum[:4])
	return clean[:min(len(clean), maxName-len(digits))] + digits
}
