package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A NameRule is a vendor's rule for names of tools.
type NameRule struct {
	Max         int
	LetterFirst bool // the first is a letter or _
}

// String says what a name may be.
func (r NameRule) String() string {
	text := fmt.Sprintf("names have at most %d letters, digits, _ and -", r.Max)
	if r.LetterFirst {
		text += ", and begin with a letter or _"
	}
	return text
}

// Fits reports whether a name may be sent as it is.
func (r NameRule) Fits(name string) bool {
	return name != "" && len(name) <= r.Max && r.clean(name) == name
}

func (r NameRule) clean(name string) string {
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

// Short returns a name that satisfies the rule. The result depends only on the name,
// so it is the same in every request: a name that does not fit gets 8 hex digits of
// its SHA-256.
func (r NameRule) Short(name string) string {
	if r.Fits(name) {
		return name
	}
	return r.mark(name, 4)
}

func (r NameRule) mark(name string, bytes int) string {
	sum := sha256.Sum256([]byte(name))
	digits := "_" + hex.EncodeToString(sum[:bytes])
	clean := r.clean(name)
	if clean == "" {
		clean = "_"
	}
	return clean[:min(len(clean), r.Max-len(digits))] + digits
}

// Names translates the names of a request's tools to what its vendor takes,
// and back. The zero value, and nil, know none: Sent then makes a name fit,
// and Own keeps it.
type Names struct {
	rule      NameRule
	sent, own map[string]string
}

// NewNames makes the translation for tools.
func NewNames(rule NameRule, tools []Tool) *Names {
	n := &Names{rule: rule, sent: map[string]string{}, own: map[string]string{}}
	for _, t := range tools { // those that need no other come first: nobody takes theirs
		if rule.Fits(t.Name) {
			n.sent[t.Name], n.own[t.Name] = t.Name, t.Name
		}
	}
	for _, t := range tools {
		if n.sent[t.Name] != "" {
			continue
		}
		short := rule.Short(t.Name)
		for size := 5; n.own[short] != "" && size < 16; size++ {
			short = rule.mark(t.Name, size)
		}
		n.sent[t.Name], n.own[short] = short, t.Name
	}
	return n
}

// Sent returns the name for the vendor.
func (n *Names) Sent(rule NameRule, own string) string {
	if n != nil {
		if sent := n.sent[own]; sent != "" {
			return sent
		}
	}
	return rule.Short(own)
}

// Send is Sent, and reports a name that Own does not know to lead back.
func (n *Names) Send(rule NameRule, own, path string, losses *Losses) string {
	sent := n.Sent(rule, own)
	if back := n.Own(sent); back != own {
		losses.Carry(path, "the vendor limits the length and characters of tool names", tree.Str(back))
	}
	return sent
}

// Own returns the tool's own name.
func (n *Names) Own(sent string) string {
	if n != nil {
		if own := n.own[sent]; own != "" {
			return own
		}
	}
	return sent
}
