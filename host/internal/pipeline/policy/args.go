package policy

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/call"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// matchArgs reports whether the arguments of a call match all patterns of the rule. It
// returns an error for arguments that parsers could read differently, for example with a
// duplicate member.
func (r *Rule) matchArgs(req *call.Request) (bool, error) {
	if len(r.Args) == 0 {
		return true, nil
	}
	arguments, err := req.Arguments()
	if err != nil {
		return false, err
	}
	for name, pattern := range r.Args {
		path := []string{name}
		if rest, ok := strings.CutPrefix(name, "/"); ok {
			path = strings.Split(rest, "/")
			for i, part := range path {
				path[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
			}
		}
		f := argFinder{exact: r.Do == Allow, known: declaredArgs(req.Tool)}
		if err := f.find(arguments, path, 0); err != nil {
			return false, toolerr.New(toolerr.InvalidParams, "the arguments of %s: %w", req.Tool.Name, err)
		}
		if !f.matches(pattern) {
			return false, nil
		}
	}
	return true, nil
}

// argFinder collects the values that the argument with a name can have.
type argFinder struct {
	exact  bool // a rule that allows: names as they are, everything must match
	texts  []string
	others bool // a member that the tool could take for it was seen

	known map[string]bool // the arguments that the tool lists; nil: it does not say
}

// declaredArgs returns the names of the arguments that a tool's schema declares; nil: it
// declares none.
func declaredArgs(t *call.Tool) map[string]bool {
	if known := propertyNames(t.Input); known != nil {
		return known
	}
	var d struct {
		Input json.RawMessage `json:"inputSchema"`
	}
	if json.Unmarshal(t.Definition, &d) != nil || len(d.Input) == 0 {
		return nil
	}
	return propertyNames(d.Input)
}

// propertyNames returns the names of the properties that a schema declares; nil: none.
func propertyNames(schema json.RawMessage) map[string]bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return nil
	}
	known := make(map[string]bool, len(s.Properties))
	for name := range s.Properties {
		known[name] = true
	}
	return known
}

// mayMean reports whether a member can be the argument with a name: the names are equal
// except for case, or the tool declares name but not member, at the top level. Tools
// accept alternative spellings that they do not declare (path for file_path).
func (f *argFinder) mayMean(member, name string, depth int) bool {
	return strings.EqualFold(member, name) || depth == 0 && f.known[name] && !f.known[member]
}

// matches reports whether the found texts match a pattern: any of them, or if the finder
// is exact all of them, at least one, and no member with a similar name exists.
func (f *argFinder) matches(pattern string) bool {
	if f.exact {
		if f.others || len(f.texts) == 0 {
			return false
		}
		for _, text := range f.texts {
			if !matchesPattern(pattern, text) {
				return false
			}
		}
		return true
	}
	for _, text := range f.texts {
		if matchesPattern(pattern, text) {
			return true
		}
	}
	return false
}

// maxDepth bounds the nesting of arguments that are searched; deeper ones are an error.
const maxDepth = 100

// find collects the values at a path below value. It returns an error beyond maxDepth and
// for ambiguous JSON.
func (f *argFinder) find(value json.RawMessage, path []string, depth int) error {
	if depth > maxDepth {
		return toolerr.New(toolerr.InvalidParams, "nested more than %d deep", maxDepth)
	}
	switch {
	case value[0] == '{':
		return f.findMembers(value, path, depth)
	case value[0] == '[':
		return f.findItems(value, path, depth)
	case len(path) > 0:
		return nil
	}
	text := string(value)
	if value[0] == '"' {
		if err := json.Unmarshal(value, &text); err != nil {
			return err
		}
	}
	f.texts = append(f.texts, text)
	if n, err := strconv.ParseFloat(text, 64); !f.exact && value[0] != '"' && err == nil { // 1e3 is 1000
		f.texts = append(f.texts, strconv.FormatFloat(n, 'f', -1, 64))
	}
	return nil
}

// findMembers looks in the members of an object for the rest of a path. It returns an error
// if object is malformed or nested too deep.
func (f *argFinder) findMembers(object json.RawMessage, path []string, depth int) error {
	members, err := jsonrpc.Members(object)
	if err != nil {
		return err
	}
	for _, m := range members {
		rest := path
		if len(path) > 0 {
			if !f.mayMean(m.Name, path[0], depth) {
				continue
			}
			if m.Name != path[0] {
				f.others = true
			}
			rest = path[1:]
		}
		if err := f.find(m.Value, rest, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// findItems looks in the items of a list for the rest of a path. It returns an error if
// list is malformed or nested too deep.
func (f *argFinder) findItems(list json.RawMessage, path []string, depth int) error {
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil {
		return err
	}
	for i, item := range items {
		rest := path
		if len(path) > 0 {
			if path[0] != strconv.Itoa(i) {
				continue
			}
			rest = path[1:]
		}
		if err := f.find(item, rest, depth+1); err != nil {
			return err
		}
	}
	return nil
}
