package policy

import "strings"

// grammar is how a program's command line is read up to the command that it
// starts.
type grammar struct {
	short    string // short options that take a value; the others take none
	long     string // long options that take one, separated by spaces
	optional string // short options whose value, if any, is attached to them
	operands int    // words between the options and the command
	// transparent programs do nothing of their own, so that no allow-list
	// needs to name them.
	transparent bool
	// shell: the words are joined and given to a shell.
	joinsWords bool
	// reads: without a command it takes commands from its input.
	readsCommands bool
	// command names the option, short or long, whose value is shell code.
	codeOption string
	// only names options that make it start nothing.
	inertOptions string
}

// option is one option as given.
type option struct {
	name  string // "-k", "--kill-after"
	value field
}

// options reads the options at the front of args, as getopt does with "+".
// sure is false where a word that is not known stands among them.
func (g grammar) leadingOptions(args []field) (found []option, rest []field, sure bool) {
	long := strings.Fields(g.long)
	for len(args) > 0 {
		text := args[0].text
		switch {
		case args[0].maybeMany || strings.HasPrefix(text, unknownText):
			return found, args, false
		case text == "--":
			return found, args[1:], true
		case len(text) < 2 || text[0] != '-':
			return found, args, true
		}
		args = args[1:]
		if strings.HasPrefix(text, "--") {
			name, value, attached := strings.Cut(text, "=")
			o := option{name: name, value: field{text: value}}
			if full := completeLongOption(name, long); full != "" {
				o.name = full
				if !attached {
					o.value, args = takeFirst(args)
				}
			}
			found = append(found, o)
			continue
		}
		var more []option
		more, args = g.splitCluster(text[1:], args)
		found = append(found, more...)
	}
	return found, nil, true
}

// cluster reads short options written together.
func (g grammar) splitCluster(letters string, args []field) (found []option, rest []field) {
	for i := range letters {
		o := option{name: "-" + letters[i:i+1]}
		takes := strings.IndexByte(g.short, letters[i]) >= 0
		optional := strings.IndexByte(g.optional, letters[i]) >= 0
		switch {
		case (takes || optional) && i+1 < len(letters):
			o.value = field{text: letters[i+1:]}
		case takes:
			o.value, args = takeFirst(args)
		}
		found = append(found, o)
		if takes || optional {
			break
		}
	}
	return found, args
}

func takeFirst(args []field) (field, []field) {
	if len(args) == 0 {
		return field{}, nil
	}
	return args[0], args[1:]
}

// complete returns the long option that name is, or is short for.
func completeLongOption(name string, long []string) string {
	for _, full := range long {
		if "--"+full == name {
			return name
		}
	}
	for _, full := range long {
		if len(name) > 3 && strings.HasPrefix("--"+full, name) {
			return "--" + full
		}
	}
	return ""
}

// valueOf returns the value of the last option with one of the names.
func lastValue(options []option, names ...string) (field, bool) {
	for i := len(options) - 1; i >= 0; i-- {
		for _, name := range names {
			if options[i].name == name {
				return options[i].value, true
			}
		}
	}
	return field{}, false
}
