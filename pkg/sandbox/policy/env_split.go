package policy

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// skipEnvAssignments returns the command of env, after its assignments, which it
// checks. It splits the value of -S. The result is empty if env starts no command.
func (s *shellText) skipEnvAssignments(options []option, rest []field) (command []field) {
	if split, ok := lastValue(options, "-S", "--split-string"); ok {
		if split.hasUnknown() {
			s.addDoubt(true, "env -S with words that are not known")
		}
		rest = append(splitEnvString(split), rest...)
		more, after, _ := wrappers["env"].leadingOptions(rest)
		if _, again := lastValue(more, "-S", "--split-string"); again {
			if s.eval.bytesLeft -= len(split.text); s.eval.bytesLeft < 0 {
				s.eval.denyOverBound("env -S within env -S")
				return nil
			}
			return s.skipEnvAssignments(more, after)
		}
		rest = after
	}
	for len(rest) > 0 {
		name, value, ok := strings.Cut(rest[0].text, "=")
		if rest[0].is("-") {
			rest = rest[1:]
			continue
		}
		if !ok || strings.Contains(name, unknownText) {
			break
		}
		s.checkVariableValue(name, field{text: value}, "env")
		rest = rest[1:]
	}
	return rest
}

// splitEnvString splits text as env -S does: like a shell without expansions.
// ${NAME} is unknown.
func splitEnvString(f field) []field {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(strings.ReplaceAll(replaceEnvBlanks(f.text), unknownText, "${__}")), "")
	if err != nil || len(file.Stmts) != 1 {
		return []field{{text: unknownText, maybeMany: true}}
	}
	call, ok := file.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok {
		return []field{{text: unknownText, maybeMany: true}}
	}
	s := &shellText{eval: &evaluation{policy: &Policy{}, nodesLeft: maxSyntaxNodes}, vars: newVariables(), functionsHere: map[string]bool{}}
	var fields []field
	for _, assign := range call.Assigns {
		value := s.expandText(assign.Value, nil)
		fields = append(fields, field{text: assign.Name.Value + "=" + value.text})
	}
	return append(fields, s.expandFields(call.Args, nil)...)
}

// replaceEnvBlanks replaces the \_ of env -S, which means a blank outside
// single quotes, by a blank.
func replaceEnvBlanks(text string) string {
	var b strings.Builder
	single := false
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && !single && i+1 < len(text) && text[i+1] == '_':
			b.WriteByte(' ')
			i++
			continue
		case text[i] == '\\' && i+1 < len(text):
			b.WriteByte(text[i])
			i++
		case text[i] == '\'':
			single = !single
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
