package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is what clients take (OpenAI, Bedrock): ^[a-zA-Z0-9_-]{1,64}$.
const maxName = 64

// ServedName returns the name a tool is served under, which depends on the
// server's and the tool's names alone: plain, or SERVER__TOOL. A name that is
// too long, or has other characters than clients take, or could be another
// pair's, is told apart by 8 hex digits of the SHA-256 of the pair.
func ServedName(server, tool string, plain bool) string {
	name := server + "__" + tool
	if plain {
		name = tool
	}
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	// The first "__" of a name ends its server's part.
	ambiguous := !plain && (strings.Contains(server, "__") || strings.HasSuffix(server, "_"))
	if clean == name && len(name) <= maxName && !ambiguous {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	mark := "_" + hex.EncodeToString(sum[:4])
	return clean[:min(len(clean), maxName-len(mark))] + mark
}
