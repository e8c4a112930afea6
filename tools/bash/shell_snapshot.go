package main

import (
	"bytes"
	"errors"
	"strings"
)

// shellSnapshot is the state of a shell at its end, as the shell reports it. A
// command can forge a snapshot, to no effect: the directory must be in the
// roots, and the variables pass the environment's filter.
type shellSnapshot struct {
	dir      string            // absolute
	exported map[string]string // exported variables
}

// prologue returns code that the command's own bash runs before the command,
// without affecting its line numbers, traps and options. It unsets the
// variables in unset. When the shell ends, except by exec or KILL, the code
// writes the directory and the exported variables to the file report. It uses
// only builtins and starts no process. The file is empty or missing and is not
// truncated: file systems write a truncated file to disk at the latest when it
// is closed, which takes longer than everything else.
//
// If the command sets a trap for EXIT, the prologue's trap runs before it and
// passes on the exit status ($?); trap is then a function. A trap for RETURN or
// DEBUG would see that function, so such commands keep the builtin.
func prologue(report, script string, unset []string) string {
	var b strings.Builder
	if len(unset) > 0 {
		b.WriteString("unset -v " + strings.Join(unset, " ") + "\n")
	}
	b.WriteString(`__toolroom_end() { local __toolroom_s=$?
{ builtin trap - DEBUG; } >&2
{ { builtin pwd -P || builtin pwd; } && builtin printf '\0' && builtin export -p; } 1<>` + shellQuote(report) + ` || :
return $__toolroom_s; }
trap '{ __toolroom_end && :; } 2>/dev/null' EXIT
`)
	if strings.Contains(script, "trap") && !strings.Contains(script, "RETURN") && !strings.Contains(script, "DEBUG") {
		b.WriteString(`trap() {
builtin trap "$@" || return
[[ $BASHPID = "$$" ]] || return 0
local __toolroom_t; __toolroom_t=$(builtin trap -p EXIT)
[[ $__toolroom_t = *__toolroom_end* ]] && return 0
if [[ -z $__toolroom_t ]]; then builtin trap '{ __toolroom_end && :; } 2>/dev/null' EXIT; return 0; fi
builtin eval "set ${__toolroom_t#trap }"
builtin trap -- "{ __toolroom_end && :; } 2>/dev/null
$1" EXIT
}
`)
	}
	return b.String()
}

// shellQuote returns text as one shell word.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// errNoSnapshot is returned for a report that is missing or malformed.
var errNoSnapshot = errors.New("no snapshot")

// parseSnapshot parses the prologue's report: the directory, NUL, then
// declarations in bash's form. It returns errNoSnapshot for anything else.
func parseSnapshot(report []byte) (shellSnapshot, error) {
	dir, rest, ok := bytes.Cut(report, []byte{0})
	dir, found := bytes.CutSuffix(dir, []byte("\n"))
	if !ok || !found || len(dir) == 0 || dir[0] != '/' {
		return shellSnapshot{}, errNoSnapshot
	}
	s := shellSnapshot{dir: string(dir), exported: map[string]string{}}
	for text := string(rest); text != ""; {
		name, value, set, after, ok := parseDeclaration(text)
		if !ok {
			return shellSnapshot{}, errNoSnapshot
		}
		if set {
			s.exported[name] = value
		}
		text = after
	}
	return s, nil
}

// parseDeclaration parses one line of export -p: declare -x NAME="value", or
// $'value', or export NAME=… in a POSIX shell. set is false for a variable
// without a value, and for an array, which no other program sees. rest is the
// text after the line. ok is false if the line is malformed.
func parseDeclaration(text string) (name, value string, set bool, rest string, ok bool) {
	text, declared := strings.CutPrefix(text, "declare -")
	if !declared {
		if text, ok = strings.CutPrefix(text, "export "); !ok {
			return "", "", false, "", false
		}
	}
	array := false
	if declared || strings.HasPrefix(text, "-") {
		var flags string
		if flags, text, ok = strings.Cut(text, " "); !ok {
			return "", "", false, "", false
		}
		array = strings.ContainsAny(flags, "aA")
	}
	end := strings.IndexAny(text, "=\n")
	if end <= 0 {
		return "", "", false, "", false
	}
	name = text[:end]
	if text[end] == '\n' {
		return name, "", false, text[end+1:], true
	}
	text = text[end+1:]
	if array {
		_, rest, ok = strings.Cut(text, ")\n")
		return name, "", false, rest, ok
	}
	value, rest, ok = parseQuoted(text)
	return name, value, true, rest, ok
}

// parseQuoted parses a quoted value up to the end of its line. rest is the text after
// the line. ok is false if the value is not quoted, has no end, or does not end its
// line.
func parseQuoted(text string) (value, rest string, ok bool) {
	var b strings.Builder
	switch {
	case strings.HasPrefix(text, `$'`):
		return parseANSIQuoted(text[2:])
	case !strings.HasPrefix(text, `"`):
		return "", "", false
	}
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			if i+1 >= len(text) || text[i+1] != '\n' {
				return "", "", false
			}
			return b.String(), text[i+2:], true
		case c == '\\' && i+1 < len(text) && strings.IndexByte("\"\\$`\n", text[i+1]) >= 0:
			i++
			if text[i] != '\n' {
				b.WriteByte(text[i])
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", "", false
}

// parseANSIQuoted parses the value after $' up to the end of its line, with its escapes
// replaced. rest is the text after the line. ok is false if the value has no end, does not
// end its line, or has an unknown escape.
func parseANSIQuoted(text string) (value, rest string, ok bool) {
	plain := map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'a': 7, 'b': 8, 'v': 11, 'f': 12, 'e': 27, 'E': 27, '\\': '\\', '\'': '\'', '"': '"', '?': '?'}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\'':
			if i+1 >= len(text) || text[i+1] != '\n' {
				return "", "", false
			}
			return b.String(), text[i+2:], true
		case c != '\\' || i+1 >= len(text):
			b.WriteByte(c)
		case text[i+1] >= '0' && text[i+1] <= '7':
			n, digits := 0, 0
			for digits < 3 && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '7' {
				n = n*8 + int(text[i+1]-'0')
				i, digits = i+1, digits+1
			}
			b.WriteByte(byte(n))
		default:
			i++
			if known, ok := plain[text[i]]; ok {
				b.WriteByte(known)
			} else {
				return "", "", false
			}
		}
	}
	return "", "", false
}
