package policy

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// WrapperNames returns the programs in the table of wrappers, sorted.
func WrapperNames() []string { return slices.Sorted(maps.Keys(wrappers)) }

// NetworkClientNames returns the names in the table of network clients, sorted.
func NetworkClientNames() []string { return slices.Sorted(maps.Keys(networkClients)) }

// Words returns the expanded arguments of a simple command, and whether all of
// them are known.
func Words(text string) ([]string, bool) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader("x "+text), "")
	if err != nil || len(file.Stmts) != 1 {
		return nil, false
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return nil, false
	}
	p := &Policy{}
	s := &shellText{eval: &evaluation{policy: p, nodesLeft: maxSyntaxNodes}, vars: newVariables(), functionsHere: map[string]bool{}, positional: []field{}}
	words := []string{}
	for _, f := range s.expandFields(call.Args[1:], nil) {
		if f.hasUnknown() || f.maybeMany {
			return nil, false
		}
		words = append(words, f.text)
	}
	return words, true
}
