package glob

import (
	"strings"
	"unicode/utf8"
)

// A class has bash's syntax and is rewritten for doublestar, which supports
// neither [:names:] nor "]" as the first member, and whose classes may match a
// slash.

// namedClasses maps the names of POSIX and bash classes to pairs of characters:
// the first and last of each range, in ASCII.
var namedClasses = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f",
	"digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r",
	"upper": "AZ", "word": "09AZaz__", "xdigit": "09AFaf",
}

// classReader rewrites one class of a pattern for doublestar.
type classReader struct {
	text       string
	at         int
	fold       bool // [:upper:] is compared with names in lower case
	out        strings.Builder
	hasMembers bool // out has members
}

// readClass returns the class that begins at text[start], in doublestar's
// syntax, and the index after it. reason says why the text is not a class; ""
// if it is. If fold is set, the class is for names in lower case.
func readClass(text string, start int, fold bool) (class string, end int, reason string) {
	r := &classReader{text: text, at: start + 1, fold: fold}
	r.out.WriteByte('[')
	if r.at < len(text) && (text[r.at] == '^' || text[r.at] == '!') {
		r.out.WriteString(`^\/`)
		r.at++
	}
	for first := r.at; r.at < len(text); {
		if text[r.at] == ']' && r.at > first {
			if !r.hasMembers {
				r.addRange("\x00", "\x00") // a character that no name has
			}
			return r.out.String() + "]", r.at + 1, ""
		}
		r.readMember()
	}
	if strings.HasPrefix(strings.TrimLeft(text[start+1:], "^!"), "]") {
		reason = `"[]" is an empty class (write \[ for a literal bracket)`
	} else {
		reason = `unclosed "[" (write \[ for a literal bracket)`
	}
	return "", start + 1, reason
}

// readMember reads one member (a character, a range or a named class) and
// writes it to out.
func (r *classReader) readMember() {
	if name, ok := r.readBracketed(":"); ok {
		if name == "upper" && r.fold {
			name = "lower"
		}
		for ends := namedClasses[name]; ends != ""; ends = ends[2:] {
			r.addRange(ends[:1], ends[1:2])
		}
		return
	}
	from, ok := r.readCharacter()
	if !ok {
		return
	}
	to := from
	if rest := r.text[r.at:]; len(rest) > 1 && rest[0] == '-' && rest[1] != ']' {
		r.at++
		to, ok = r.readCharacter()
	}
	if ok {
		r.addRange(from, to)
	}
}

// readCharacter reads one character, which may be escaped or written as [.x.]
// or [=x=]. ok is false if the brackets hold more than one character.
func (r *classReader) readCharacter() (char string, ok bool) {
	for _, mark := range []string{".", "="} {
		if name, ok := r.readBracketed(mark); ok {
			return name, utf8.RuneCountInString(name) == 1
		}
	}
	if r.text[r.at] == '\\' && r.at+1 < len(r.text) {
		r.at++
	}
	_, size := utf8.DecodeRuneInString(r.text[r.at:])
	char = r.text[r.at : r.at+size]
	r.at += size
	return char, true
}

// readBracketed reads "[:name:]", with mark instead of the colon, and returns
// the name. If the text is something else, it reads nothing and returns false.
func (r *classReader) readBracketed(mark string) (name string, ok bool) {
	rest, ok := strings.CutPrefix(r.text[r.at:], "["+mark)
	if !ok {
		return "", false
	}
	name, _, ok = strings.Cut(rest, mark+"]")
	if !ok || strings.Contains(name, "/") {
		return "", false
	}
	r.at += len(name) + 4
	return name, true
}

// addRange writes the range from-to to out, without the slash in it. It writes
// nothing if the range runs backwards.
func (r *classReader) addRange(from, to string) {
	switch {
	case from == to:
		r.out.WriteString(`\` + from)
	case from < "/" && to >= "/": // doublestar would accept a slash as a member
		r.addRange(from, ".")
		if to > "/" {
			r.addRange("0", to)
		}
	case from < to:
		r.out.WriteString(`\` + from + `-\` + to)
	default:
		return
	}
	r.hasMembers = true
}

// rewriteClasses returns a valid path element with its classes in doublestar's
// syntax. If fold is set, it is matched with names in lower case.
func rewriteClasses(text string, fold bool) string {
	if !strings.Contains(text, "[") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); {
		end := i + 1
		switch text[i] {
		case '\\':
			end = min(i+2, len(text))
			b.WriteString(text[i:end])
		case '[':
			var class string
			class, end, _ = readClass(text, i, fold)
			b.WriteString(class)
		default:
			b.WriteByte(text[i])
		}
		i = end
	}
	return b.String()
}
