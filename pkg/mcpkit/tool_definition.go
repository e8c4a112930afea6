package mcpkit

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/wire"
)

// isValidName reports whether name has 1 to 64 characters, each an ASCII
// letter, a digit or in punctuation: the names that every model API accepts. A
// regular expression would have to be compiled at every start.
func isValidName(name, punctuation string) bool {
	return name != "" && len(name) <= 64 &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r, punctuation) })
}

// isNameRune reports whether r is an ASCII letter or digit, or one of the
// characters of punctuation.
func isNameRune(r rune, punctuation string) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune(punctuation, r)
}

// faults returns the faults of the definition that do not depend on types.
func (d Def) faults() []error {
	var faults []error
	add := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	for i, name := range append([]string{d.Name}, d.Aliases...) {
		if !isValidName(name, "_-") {
			add("clients refuse the name %q: letters, digits, _ and -, at most 64 of them", name)
		}
		if i > 0 && (name == d.Name || slices.Index(d.Aliases, name) != i-1) {
			add("the alias %q is given twice", name)
		}
	}
	if d.Hints.ReadOnly && d.Hints.Destructive {
		add("a tool cannot be both read-only and destructive")
	}
	if d.Timeout < 0 || d.MaxConcurrent < 0 || d.MaxTokens < 0 {
		add("Timeout, MaxConcurrent and MaxTokens cannot be negative")
	}
	if _, taken := d.Meta[metaKeyCallSettings]; taken {
		add("_meta %s is reserved", metaKeyCallSettings)
	}
	return faults
}

// metaKeyCallSettings is the _meta key for a tool's call settings, such as
// timeout and concurrency, which hosts read.
const metaKeyCallSettings = "toolroom/call"

// makeDefinition returns the tool's entry for tools/list.
func (t *Tool) makeDefinition() (json.RawMessage, error) {
	d := t.def
	type annotations struct {
		ReadOnly    bool `json:"readOnlyHint"`
		Destructive bool `json:"destructiveHint"`
		Idempotent  bool `json:"idempotentHint"`
		OpenWorld   bool `json:"openWorldHint"`
	}
	meta := map[string]any{metaKeyCallSettings: struct {
		Validates  bool  `json:"validates"`
		TimeoutMS  int64 `json:"timeoutMs"` // 0: none
		Concurrent int   `json:"concurrency"`
		Control    bool  `json:"control,omitempty"`
	}{true, d.Timeout.Milliseconds(), positiveOr(d.MaxConcurrent, wire.DefaultMaxConcurrent), d.Control}}
	for key, value := range d.Meta {
		meta[key] = value
	}
	text, err := jsonrpc.Marshal(struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		Input       json.RawMessage `json:"inputSchema"`
		Output      json.RawMessage `json:"outputSchema,omitempty"`
		Annotations annotations     `json:"annotations"`
		Meta        map[string]any  `json:"_meta"`
	}{
		d.Name, d.Title, strings.TrimSpace(d.Description), t.input.JSON(), t.OutputSchema(),
		annotations{d.Hints.ReadOnly, d.Hints.Destructive, d.Hints.Idempotent, d.Hints.OpenWorld}, meta,
	})
	if err != nil {
		return nil, fmt.Errorf("the definition cannot be sent as JSON: %w", err)
	}
	return text, nil
}

// positiveOr returns n if it is above 0, else otherwise.
func positiveOr(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}
