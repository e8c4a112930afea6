package policy

import (
	"strings"
)

// optionsEnd returns the number of arguments before the -- that ends the
// options, or of all arguments. A -- after an option may be the option's value
// and does not count, except for programs whose options take no values.
func (r rule) optionsEnd(args []field) int {
	for i, arg := range args {
		if !arg.is("--") {
			continue
		}
		before := ""
		if i > 0 {
			before = args[i-1].text
		}
		_, program := splitProgram(r.words[0])
		if len(before) < 2 || before[0] != '-' || strings.HasPrefix(before, "--") && strings.Contains(before, "=") || program == "rm" || program == "rmdir" {
			return i
		}
	}
	return len(args)
}

// hasOption says whether args contain the option: a long one as it is or with
// =value, a short one with each of its letters in some cluster.
func hasOption(option string, args []field) answer {
	if strings.HasPrefix(option, "--") {
		best := no
		for i, arg := range args {
			text, _, _ := strings.Cut(arg.text, "=")
			fit := max(matchGlob(option, text), matchGlob(option, arg.text))
			if fit == maybe && isSurelyNoOption(args, i) {
				fit = no
			}
			best = max(best, fit)
		}
		return best
	}
	result := yes
	for _, letter := range option[1:] {
		found := no
		for i, arg := range args {
			switch {
			case arg.text == option:
				found = yes
			case arg.hasUnknown():
				if !isSurelyNoOption(args, i) {
					found = max(found, maybe)
				}
			case len(arg.text) > 1 && arg.text[0] == '-' && arg.text[1] != '-' && strings.ContainsRune(arg.text, letter):
				found = yes
			}
		}
		result = min(result, found)
	}
	return result
}

// maxUnknownRun is the number of unknown arguments in a row from which on all
// count alike.
const maxUnknownRun = 16 // unknown arguments in a row that count alike

// isSurelyNoOption reports whether args[i], which is not fully known, is almost
// surely no option: it begins with other text than a dash, is a file name that
// a glob matches, or is a single word after an option, whose value it then is
// (-m "$message").
func isSurelyNoOption(args []field, i int) bool {
	arg := args[i]
	if arg.text[0] != 0 && arg.text[0] != '-' || arg.fromGlob {
		return true
	}
	if arg.maybeMany || arg.text[0] == '-' {
		return false
	}
	for n := 0; n < maxUnknownRun && i > 0 && args[i-1].text == unknownText && !args[i-1].maybeMany; n++ {
		i-- // of "$a" "$b" the second counts as the first does
	}
	if i == 0 {
		return false
	}
	before := args[i-1].text
	return len(before) > 1 && before[0] == '-' && !strings.Contains(before, "=")
}
