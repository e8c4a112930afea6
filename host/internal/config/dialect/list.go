package dialect

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// ParseList reads servers from a command line: "cmd args;ENV=V cmd2". Servers
// are separated by semicolons and words by spaces; quotes work as in a POSIX
// shell (single ones keep everything, double ones all but \" \\ \$ and \`),
// and outside of them a backslash keeps a space, quote, semicolon or
// backslash, so that Windows paths stay what they are. Nothing is run by a
// shell.
//
// A server is named after its program, without mcp- and extension, or after
// the package that npx, uvx and their like start. Names that are taken get a
// number.
func ParseList(text string, taken func(name string) bool) *Document {
	d := &Document{File: "--mcpservers", Inputs: map[string]Input{}}
	if len(text) > maxText {
		d.addProblem(0, "too long")
		return d
	}
	lists, err := splitServers(text)
	if err != nil {
		d.addProblem(0, "%v", err)
		return d
	}
	used := map[string]bool{}
	for i, words := range lists {
		s := Server{File: d.File, lines: map[string]int{}}
		for len(words) > 0 && words[0].isAssignment() {
			name, value, _ := strings.Cut(words[0].text, "=")
			mergeInto(&s.Env, map[string]secret.Text{name: secret.Text(value)})
			words = words[1:]
		}
		if len(words) == 0 {
			d.addProblem(0, "server %d has no command", i+1)
			continue
		}
		for _, w := range words {
			s.Command = append(s.Command, w.text)
		}
		base := nameOfCommand(s.Command)
		s.Name = base
		for n := 2; used[s.Name] || taken != nil && taken(s.Name); n++ {
			s.Name = fmt.Sprintf("%s-%d", base, n)
		}
		used[s.Name] = true
		d.Servers = append(d.Servers, s)
	}
	return d
}

// word is a word of a command line. NAME=VALUE is an assignment only if no quote
// precedes the equals sign.
type word struct {
	text   string
	quoted int // the number of bytes before the first quote; -1: none
}

// isAssignment reports whether the word is NAME=VALUE of an environment variable, with no
// quote before the =.
func (w word) isAssignment() bool {
	at := strings.IndexByte(w.text, '=')
	return at > 0 && (w.quoted < 0 || w.quoted > at) && regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(w.text[:at])
}

// splitServers splits a list into servers, and each server into words. It returns an error
// for an unclosed quote.
func splitServers(text string) ([][]word, error) {
	var lists [][]word
	var words []word
	var b strings.Builder
	open, quoted := false, -1
	end := func() {
		if open {
			words = append(words, word{b.String(), quoted})
		}
		b.Reset()
		open, quoted = false, -1
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case ' ', '\t', '\n', '\r':
			end()
		case ';':
			end()
			if len(words) > 0 {
				lists = append(lists, words)
			}
			words = nil
		case '\'', '"':
			if open = true; quoted < 0 {
				quoted = b.Len()
			}
			n, err := quotedText(&b, text[i:])
			if err != nil {
				return nil, err
			}
			i += n
		case '\\':
			open = true
			if i+1 < len(text) && strings.IndexByte(" \t;'\"\\", text[i+1]) >= 0 {
				i++
				c = text[i]
			}
			b.WriteByte(c)
		default:
			open = true
			b.WriteByte(c)
		}
	}
	end()
	if len(words) > 0 {
		lists = append(lists, words)
	}
	return lists, nil
}

// quotedText writes the quoted text at the beginning of text to b, and returns the index of
// the closing quote. Without one it returns an error, and b has the rest of text.
func quotedText(b *strings.Builder, text string) (int, error) {
	quote := text[0]
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == quote:
			return i, nil
		case c == '\\' && quote == '"' && i+1 < len(text) && strings.IndexByte("\"\\$`", text[i+1]) >= 0:
			i++
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return 0, fmt.Errorf("unclosed quote (%c)", quote)
}

// nameOfCommand returns a server's name for its command: that of the program, or of the
// package or script that a launcher such as npx or python starts.
func nameOfCommand(command []string) string {
	base := func(text string) string {
		text = path.Base(strings.ReplaceAll(text, `\`, "/"))
		for _, ext := range []string{".exe", ".cmd", ".bat", ".py", ".js", ".mjs", ".ts", ".sh"} {
			text = strings.TrimSuffix(text, ext)
		}
		return text
	}
	name := base(command[0])
	switch name {
	case "npx", "uvx", "bunx", "pnpm", "yarn", "bun", "uv", "pipx", "node", "python", "python3", "deno", "docker", "podman", "cmd", "env":
		for _, arg := range command[1:] {
			if strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "/") && len(arg) == 2 || arg == "run" || arg == "x" || arg == "dlx" || arg == "exec" || arg == "tool" {
				continue
			}
			arg, _, _ = strings.Cut(base(arg), "@") // a version; the scope is gone with its slash
			if arg != "" {
				name = arg
			}
			break
		}
	}
	name = regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(name, "-")
	for _, prefix := range []string{"mcp-server-", "server-", "mcp-"} {
		if rest := strings.TrimPrefix(name, prefix); rest != "" {
			name = rest
		}
	}
	if name = strings.Trim(name, "-"); name == "" {
		return "server"
	}
	return name[:min(len(name), 40)]
}
