package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A NameRule is a vendor's rule for the names of tools.
type NameRule struct {
	Max         int  // largest number of characters
	LetterFirst bool // the first character must be a letter or _
}

// String describes the rule.
func (r NameRule) String() string {
	text := fmt.Sprintf("names have at most %d letters, digits, _ and -", r.Max)
	if r.LetterFirst {
		text += ", and begin with a letter or _"
	}
	return text
}

// Fits reports whether a name satisfies the rule.
func (r NameRule) Fits(name string) bool {
	return name != "" && len(name) <= r.Max && r.replaceInvalid(name) == name
}

// replaceInvalid returns a name with _ instead of each character that the vendor does
// not accept, and with _ before a first character that must be a letter and is not.
func (r NameRule) replaceInvalid(name string) string {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_', c == '-':
			return c
		}
		return '_'
	}, name)
	if r.LetterFirst && clean != "" && strings.IndexByte("0123456789-.:", clean[0]) >= 0 {
		return "_" + clean
	}
	return clean
}

// MakeValid returns a name that satisfies the rule. An invalid name gets 8 hex digits
// of its SHA-256. The result depends only on the name, so it is the same in every
// request.
func (r NameRule) MakeValid(name string) string {
	if r.Fits(name) {
		return name
	}
	return r.withHash(name, 4)
}

// withHash returns a valid name of at most Max characters that ends in the first bytes
// bytes of a hash of the whole name, so that shortened names stay different.
func (r NameRule) withHash(name string, bytes int) string {
	sum := sha256.Sum256([]byte(name))
	digits := "_" + hex.EncodeToString(sum[:bytes])
	clean := r.replaceInvalid(name)
	if clean == "" {
		clean = "_"
	}
	return clean[:min(len(clean), r.Max-len(digits))] + digits
}

// A NameMap translates the names of a request's tools to valid names for the vendor,
// and back. The zero value and nil have no entries: ToVendor then makes a name valid,
// and FromVendor returns it unchanged.
type NameMap struct {
	rule                 NameRule
	toVendor, fromVendor map[string]string
}

// NewNameMap returns the translation of the tools' names. Valid names stay as they are;
// the others get the name of MakeValid, with more digits if two would be equal.
func NewNameMap(rule NameRule, tools []Tool) *NameMap {
	n := &NameMap{rule: rule, toVendor: map[string]string{}, fromVendor: map[string]string{}}
	for _, t := range tools { // valid names first, so that no made name takes them
		if rule.Fits(t.Name) {
			n.toVendor[t.Name], n.fromVendor[t.Name] = t.Name, t.Name
		}
	}
	for _, t := range tools {
		if n.toVendor[t.Name] != "" {
			continue
		}
		short := rule.MakeValid(t.Name)
		for size := 5; n.fromVendor[short] != "" && size < 16; size++ {
			short = rule.withHash(t.Name, size)
		}
		n.toVendor[t.Name], n.fromVendor[short] = short, t.Name
	}
	return n
}

// ToVendor returns the name under which the tool called own is sent to the vendor; for an
// unknown tool that of MakeValid. n can be nil.
func (n *NameMap) ToVendor(rule NameRule, own string) string {
	if n != nil {
		if sent := n.toVendor[own]; sent != "" {
			return sent
		}
	}
	return rule.MakeValid(own)
}

// ToVendorReported does the same as ToVendor, and reports a name that FromVendor
// cannot translate back.
func (n *NameMap) ToVendorReported(rule NameRule, own, path string, losses *Losses) string {
	sent := n.ToVendor(rule, own)
	if back := n.FromVendor(sent); back != own {
		losses.AddEquivalent(path, "the vendor limits the length and characters of tool names", tree.Str(back))
	}
	return sent
}

// FromVendor returns the name of the tool that was sent to the vendor as sent; sent
// itself for an unknown name.
func (n *NameMap) FromVendor(sent string) string {
	if n != nil {
		if own := n.fromVendor[sent]; own != "" {
			return own
		}
	}
	return sent
}
