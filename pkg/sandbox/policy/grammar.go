package policy

import "strings"

// grammar describes how a program's command line is read, up to the command
// that it starts.
type grammar struct {
	short    string // letters of short options with a value; all others have none
	long     string // long options with a value, separated by spaces, without dashes
	optional string // letters of short options whose value, if any, is attached
	operands int    // words between the options and the command
	// transparent says that the program does nothing but start the command, so
	// that no allow rule needs to name it.
	transparent   bool
	joinsWords    bool   // the program joins the words with spaces and gives them to a shell
	readsCommands bool   // without a command, the program reads commands from its input
	codeOption    string // options, separated by spaces, whose value is shell code: "-c --command"
	inertOptions  string // options, separated by spaces, with which the program starts no command
}

// option is one option as given on a command line.
type option struct {
	name  string // with its dashes, a long option in full: "-k", "--kill-after"
	value field  // empty if the option has none
}

// leadingOptions parses the options at the start of args, as getopt does with
// "+", and returns the arguments after them. isSure is false if it stopped at a
// word that is not known, which may be an option; rest then begins with that
// word.
func (g grammar) leadingOptions(args []field) (found []option, rest []field, isSure bool) {
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
					o.value, args = cutFirstField(args)
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

// splitCluster parses short options written together, without their dash. It
// takes the value of the last one from args if it is not attached, and returns
// the arguments after it.
func (g grammar) splitCluster(letters string, args []field) (found []option, rest []field) {
	for i := range letters {
		o := option{name: "-" + letters[i:i+1]}
		takes := strings.IndexByte(g.short, letters[i]) >= 0
		optional := strings.IndexByte(g.optional, letters[i]) >= 0
		switch {
		case (takes || optional) && i+1 < len(letters):
			o.value = field{text: letters[i+1:]}
		case takes:
			o.value, args = cutFirstField(args)
		}
		found = append(found, o)
		if takes || optional {
			break
		}
	}
	return found, args
}

// cutFirstField returns the first of args and the others. Without arguments,
// first is empty.
func cutFirstField(args []field) (first field, rest []field) {
	if len(args) == 0 {
		return field{}, nil
	}
	return args[0], args[1:]
}

// completeLongOption returns the option of long, with its dashes, that name is
// equal to or an abbreviation of; "" if long has no such option.
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

// lastValue returns the value of the last option with one of the names, and
// whether there is one.
func lastValue(options []option, names ...string) (value field, found bool) {
	for i := len(options) - 1; i >= 0; i-- {
		for _, name := range names {
			if options[i].name == name {
				return options[i].value, true
			}
		}
	}
	return field{}, false
}
