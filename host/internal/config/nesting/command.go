package nesting

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// subcommands are the subcommands of the host that start the servers of the
// configuration.
var subcommands = []string{"stdio", "serve", "record", "tools", "call", "servers", "agent", "chat", "doctor"}

// ServerSubcommand returns the first of args, wherever it is, that is a subcommand of
// the host which starts servers; "" if args has no such word.
func ServerSubcommand(args []string) string {
	for _, arg := range args {
		if slices.Contains(subcommands, arg) {
			return arg
		}
	}
	return ""
}

// FlagValues returns the values of a flag of the host, --name VALUE or --name=VALUE, in
// their order.
func FlagValues(args []string, name string) (values []string) {
	for i, arg := range args {
		trimmed := strings.TrimLeft(arg, "-")
		if trimmed == arg {
			continue
		}
		if rest, ok := strings.CutPrefix(trimmed, name+"="); ok {
			values = append(values, rest)
		} else if trimmed == name && i+1 < len(args) {
			values = append(values, args[i+1])
		}
	}
	return values
}

// maxScript is the size in bytes of the largest script that is read.
const maxScript = 64 << 10

// A Search looks for hosts in the commands of servers. It remembers which words are the
// path or name of this program and what scripts contain: the scripts of the servers of a
// configuration have many words in common, and a lookup in PATH takes a system call for
// each directory. The zero value is ready for use, for a short time, by one goroutine.
type Search struct {
	paths   map[string]bool     // by word: it is the path of this program
	names   map[string]bool     // by word: it is the name of this program in PATH
	scripts map[string][]string // by path: its words; nil: it is no script
}

// FindHost looks for a host in the command of a server: as the program, as an argument
// of a launcher (env, npx, sh -c, nice …) or in a wrapper script. It returns the
// arguments that the host gets, and whether there is one. In a script, a host with
// another name is found only by its path or if its subcommand is in the same line; a
// script may build its command in ways that are not recognized.
func (s *Search) FindHost(command []string) (args []string, ok bool) {
	if len(command) > 0 && runsElsewhere(command[0]) {
		return nil, false
	}
	return s.findHost(command, 0)
}

// cached returns the value of a key in a map, computed when it is first asked for.
func cached[T any](known *map[string]T, key string, compute func(string) T) T {
	if value, ok := (*known)[key]; ok {
		return value
	}
	value := compute(key)
	if *known == nil {
		*known = map[string]T{}
	}
	(*known)[key] = value
	return value
}

// runsElsewhere reports whether a launcher runs a program on another machine or in a
// container, where other files are.
func runsElsewhere(launcher string) bool {
	name := strings.TrimSuffix(strings.ToLower(filepath.Base(launcher)), ".exe")
	return slices.Contains([]string{"docker", "podman", "nerdctl", "ssh", "kubectl", "wsl"}, name)
}

// endOfLine separates the lines of a script in a list of words.
const endOfLine = "\n"

// findHost looks in the words of a command for a host that starts servers, also in the
// scripts that it runs, up to 3 deep. It returns the host's arguments, and whether
// there is one.
func (s *Search) findHost(words []string, depth int) ([]string, bool) {
	const deepest = 3 // scripts that call scripts
	inText, inLine := subcommandsAfter(words)
	for i, word := range words {
		rest := words[i+1:]
		if inText[i] && (isHostName(word) || isPath(word) && cached(&s.paths, word, isHostPath)) || inLine[i] && cached(&s.names, word, isHostInPath) {
			return slices.DeleteFunc(slices.Clone(rest), func(word string) bool { return word == endOfLine }), true
		}
		if depth == deepest || word == endOfLine {
			continue
		}
		if containsAny(word, ' ', '\t', '\n') { // sh -c
			if args, ok := s.findHost(splitWords(word), depth+1); ok {
				return args, true
			}
		}
		if i == 0 || isPath(word) {
			if inner := cached(&s.scripts, word, scriptWords); inner != nil {
				if args, ok := s.findHost(withArguments(inner, rest), depth+1); ok {
					return args, true
				}
			}
		}
	}
	return nil, false
}

// withArguments returns the words of a script with its arguments before each word that
// contains "$@", and at the end.
func withArguments(script, args []string) (words []string) {
	words = make([]string, 0, len(script)+2*len(args))
	for _, word := range script {
		if containsAny(word, '$', '%') && slices.ContainsFunc([]string{"$@", "$*", "${@", "${*", "%*"}, func(all string) bool { return strings.Contains(word, all) }) {
			words = append(words, args...)
		}
		words = append(words, word)
	}
	return append(words, args...)
}

// subcommandsAfter reports for each word whether a subcommand follows in the text, and
// whether one follows in its line.
func subcommandsAfter(words []string) (inText, inLine []bool) {
	inText, inLine = make([]bool, len(words)), make([]bool, len(words))
	text, line := false, false
	for i, word := range slices.Backward(words) {
		line = line && word != endOfLine
		inText[i], inLine[i] = text, line
		if slices.Contains(subcommands, word) {
			text, line = true, true
		}
	}
	return inText, inLine
}

// isPath reports whether a word has a separator of paths.
func isPath(word string) bool { return containsAny(word, '/', '\\') }

// containsAny reports whether a word contains one of the bytes. For the short words of
// scripts it is faster than strings.ContainsAny.
func containsAny(word string, set ...byte) bool {
	for i := range len(word) {
		if slices.Contains(set, word[i]) {
			return true
		}
	}
	return false
}

// isHostPath reports whether a word is the path of this program.
func isHostPath(word string) bool {
	return isPath(word) && !strings.HasPrefix(word, "-") && IsSelf(word)
}

// isHostInPath reports whether a word is the name of this program in PATH. The search
// takes a system call for each directory of PATH: it is only for words that a
// subcommand follows in their line, not for each word of a script.
func isHostInPath(word string) bool {
	if word == "" || word == endOfLine || strings.HasPrefix(word, "-") || isPath(word) {
		return false
	}
	found, err := exec.LookPath(word)
	return err == nil && IsSelf(found)
}

// hostProgram is the name of the host's program.
const hostProgram = "mcp-host"

// isHostName reports whether a path, or an npm package with its version, has the name
// of the host.
func isHostName(word string) bool {
	name := word[strings.LastIndexAny(word, `/\`)+1:]
	if len(name) < len(hostProgram) {
		return false
	}
	name, _, _ = strings.Cut(name, "@")
	name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".exe"), " (deleted)")
	return name == hostProgram
}

// scriptWords returns the words of a text file that an interpreter runs, with endOfLine
// after each line; nil if it is no such file.
func scriptWords(path string) []string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxScript {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	ext := strings.ToLower(filepath.Ext(path))
	if !strings.HasPrefix(string(text), "#!") && !slices.Contains([]string{".sh", ".cmd", ".bat", ".ps1"}, ext) {
		return nil
	}
	words := []string{}
	continued := strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(string(text))
	for line := range strings.Lines(continued) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") && !strings.HasPrefix(strings.ToLower(line), "rem ") {
			words = append(append(words, splitWords(line)...), endOfLine)
		}
	}
	return words
}

// splitWords splits a line of a script into words. Quotes and operators only separate
// words, which is enough to recognize a program and its flags.
func splitWords(line string) (words []string) {
	start := -1
	for i := range len(line) {
		switch divider := line[i] < utf8.RuneSelf && isDivider[line[i]]; {
		case divider && start >= 0:
			words, start = append(words, line[start:i]), -1
		case !divider && start < 0:
			start = i
		}
	}
	if start >= 0 {
		words = append(words, line[start:])
	}
	return words
}

// isDivider says which bytes separate words.
var isDivider = func() (set [utf8.RuneSelf]bool) {
	for _, b := range []byte(" \t\r\n\"'`;|&()<>[],") {
		set[b] = true
	}
	return set
}()
