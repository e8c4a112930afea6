package policy

import (
	"fmt"
	"strings"
	"unicode"
)

// rule is one allow, deny or ask rule of the user.
type rule struct {
	kind  string // "allow", "deny" or "ask"
	text  string // as written
	words []string
}

// maxRuleText bounds the text of a rule in bytes.
const maxRuleText = 1024 // bytes

// parseRules parses rules of one kind. The error names the kind and the rule.
func parseRules(kind string, texts []string) ([]rule, error) {
	rules := make([]rule, 0, len(texts))
	for _, text := range texts {
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
			return nil, fmt.Errorf("%s rule is empty: name a program, as in %q", kind, "git push *")
		case len(text) > maxRuleText:
			return nil, fmt.Errorf("%s rule %.40q…: longer than %d bytes", kind, text, maxRuleText)
		case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
			return nil, fmt.Errorf("%s rule %q: holds a control character", kind, text)
		case strings.ContainsAny(text, "|&;<>()`\"'"):
			return nil, fmt.Errorf("%s rule %q: a rule consists of the words of one simple command, without quotes or operators", kind, text)
		}
		rules = append(rules, rule{kind: kind, text: text, words: words})
	}
	return rules, nil
}

// String returns the rule as the user wrote it, with its kind.
func (r rule) String() string { return r.kind + " " + r.text }

// kindWithArticle returns "an allow", "a deny" or "an ask".
func (r rule) kindWithArticle() string {
	if r.kind == "deny" {
		return "a deny"
	}
	return "an " + r.kind
}

// answer says whether a rule, option or pattern matches a command: maybe if
// that depends on words that are not known. The order no < maybe < yes is used
// with min and max.
type answer int

const (
	// no means certainly not, maybe that it depends on unknown words, yes
	// certainly.
	no answer = iota
	maybe
	yes
)

// matchesProgram says whether the rule's first word matches the program. If
// that word has no slash, it matches the plain name and programs in the
// system's directories, so that ./git is not git; with anyDir, it matches
// programs in all directories.
func (r rule) matchesProgram(program field, anyDir bool) answer {
	pattern := r.words[0]
	if !strings.Contains(pattern, "/") && pattern != "*" {
		dir, base := splitProgram(program.text)
		if !anyDir && dir != "" && !isSystemDir(dir) {
			return no
		}
		program.text = base
	}
	return matchGlob(pattern, program.text)
}

// allowsWords reports whether an allow rule certainly matches the words one by
// one.
func (r rule) allowsWords(fields []field) bool {
	return len(fields) > 0 && r.matchesProgram(fields[0], false) == yes && matchWords(r.words[1:], fields[1:])
}

// matchWords reports whether the pattern certainly matches all fields one by
// one. The word "*" matches any number of fields.
func matchWords(pattern []string, fields []field) bool {
	// star and mark are the positions to return to: the usual glob with a single
	// backtrack.
	i, star, mark := 0, -1, 0
	for j := 0; j < len(fields); {
		switch {
		case i < len(pattern) && pattern[i] == "*":
			star, mark = i, j
			i++
		case i < len(pattern) && !fields[j].maybeMany && matchGlob(pattern[i], fields[j].text) == yes:
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(pattern) && pattern[i] == "*" {
		i++
	}
	return i == len(pattern)
}

// matchesCommand says whether a deny or ask rule matches the command as spelt:
// its program, all its options anywhere among the options, and its operands in
// order.
func (r rule) matchesCommand(fields []field) answer {
	result := r.matchesProgram(fields[0], true)
	if result == no {
		return no
	}
	if fields[0].maybeMany {
		return maybe // the rest of the rule may be in the same unknown text
	}
	args := fields[1:]
	given := args[:r.optionsEnd(args)]
	var operands []string
	for _, word := range r.words[1:] {
		if len(word) > 1 && word[0] == '-' {
			result = min(result, max(hasOption(word, given), r.hasOptionAlias(word, given)))
		} else {
			operands = append(operands, word)
		}
	}
	if result == no {
		return no
	}
	if name := r.words[0]; name == "git" && len(args) > 0 {
		args = args[countGitGlobalArgs(args):]
	}
	return min(result, matchOperands(operands, args))
}

// maxRuleArguments bounds the arguments that are compared with a rule's
// operands.
const maxRuleArguments = 4096 // arguments compared with a rule's operands

// matchOperands says whether args contain the operands of a rule in order from the
// start, with only options, each with at most one value, between them. The operand *
// matches any number of arguments. The answer is maybe if it depends on unknown words,
// or if there are more than maxRuleArguments arguments. It takes time in proportion to
// len(operands) × len(args).
func matchOperands(operands []string, args []field) answer {
	if len(args) > maxRuleArguments {
		return maybe
	}
	// fit[j] is the answer for operands[i:] against args[j:].
	fit := make([]answer, len(args)+1)
	for j := range fit {
		fit[j] = yes
	}
	for i := len(operands) - 1; i >= 0; i-- {
		row := make([]answer, len(args)+1)
		if operands[i] == "*" {
			row[len(args)] = fit[len(args)]
		}
		for j := len(args) - 1; j >= 0; j-- {
			text := args[j].text
			switch {
			case operands[i] == "*":
				row[j] = max(fit[j], row[j+1])
				continue
			case args[j].maybeMany:
				row[j] = max(maybe, row[j+1])
				continue
			case len(text) > 1 && text[0] == '-':
				row[j] = row[j+1]
				if j+2 <= len(args) && !strings.Contains(text, "=") && text != "--" {
					row[j] = max(row[j], row[j+2])
				}
				continue
			}
			row[j] = min(matchGlob(operands[i], text), fit[j+1])
		}
		fit = row
	}
	return fit[0]
}
