package docs_test

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"mvdan.cc/sh/v3/syntax"
)

// A step is a command of a console block and the output that follows it.
type step struct{ command, output string }

// steps splits a console block: a line that begins with "$ " is a command,
// and lines that follow it with "> " continue it.
func steps(text string) []step {
	var found []step
	for line := range strings.Lines(text) {
		command, begins := strings.CutPrefix(line, "$ ")
		more, continues := strings.CutPrefix(line, "> ")
		switch {
		case begins || len(found) == 0: // text before the first command fails as one
			found = append(found, step{command: command})
		case continues && found[len(found)-1].output == "":
			found[len(found)-1].command += more
		default:
			found[len(found)-1].output += line
		}
	}
	return found
}

// matches reports whether output is what a page shows: … in a line is any
// text, and … alone in a line is any number of lines.
func matches(shown, output string) bool {
	pattern := regexp.QuoteMeta(strings.TrimRight(shown, "\n"))
	pattern = regexp.MustCompile(`(?m)^…$\n?`).ReplaceAllString(pattern, `(?:.*(?:\n|\z))*`)
	pattern = strings.ReplaceAll(pattern, "…", `[^\n]*`)
	return regexp.MustCompile(`\A` + pattern + `\n*\z`).MatchString(strings.TrimRight(output, "\n"))
}

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		shown, output string
		want          bool
	}{
		{"a\n", "a\n", true}, {"a\n", "b\n", false}, {"a … c\n", "a b c\n", true}, {"a … c\n", "a\nc\n", false},
		{"…\nc\n", "a\nb\nc\n", true}, {"a\n…\n", "a\nb\nc\n", true}, {"a\n…\n", "b\nc\n", false}, {"", "x", false}, {"", "", true},
		{"a.c\n", "abc\n", false}, {"… c\n", "a\nb c\n", false}, {"… c\nd\n", "b c\nd\n", true},
	} {
		require.Equal(t, c.want, matches(c.shown, c.output), "%q %q", c.shown, c.output)
	}
}

// Each page is read from its beginning: its commands run in one shell, its
// blocks with the directive "file NAME" are written into the directory where
// the shell then is.
func TestCommands(t *testing.T) {
	onlyUnix(t)
	for _, page := range pages(t) {
		all := blocks(t, page)
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			var m *machine
			text := read(t, page)
			for _, b := range all {
				name, isFile := strings.CutPrefix(b.directive, "file ")
				if !isFile && b.language != "console" && b.language != "sh" {
					continue
				}
				if b.directive == "parse" || b.directive == "serve" {
					_, err := syntax.NewParser().Parse(strings.NewReader(b.text), page)
					require.NoError(t, err)
					continue
				}
				if m == nil {
					m = newMachine(t)
				}
				switch {
				case strings.HasPrefix(b.directive, "sandbox") && !confines(m):
					t.Log("commands cannot be confined here")
				case b.directive == "sandbox review" && !reviews(m):
					t.Log("changes cannot be reviewed here")
				case isFile:
					m.write(name, b.text)
				case b.language == "sh":
					out, err := m.run(b.text)
					require.NoError(t, err, "%s:%d\n%s\n%s", page, b.line, b.text, out)
				default:
					text = play(t, m, b, text)
				}
			}
			if update() && text != read(t, page) {
				require.NoError(t, os.WriteFile(page, []byte(text), 0o644))
			}
		})
	}
}

var word = regexp.MustCompile(`\bID\b`)

// shownID finds the id of an approval, of changes or of an undo record.
var shownID = regexp.MustCompile(`(?m)^([a-z2-7]{24})\b|^(?:undo|changes) (\w+)|"job_id":"(\w+)"`)

// varying are the parts of outputs that differ from run to run: times of day,
// durations, ids, and what confines a command.
var varying = regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:µs|ms|s)\b|(?:20\d\d-\d\d-\d\d )?\b\d\d:\d\d:\d\d\b|\b[a-z2-7]{24}\b|(sandbox: ).*`)

// play runs a console block and compares what it prints; with -update it
// returns the page's text with what was printed.
func play(t *testing.T, m *machine, b block, text string) string {
	t.Helper()
	var now strings.Builder
	id := "" // what ID in a command means: the id in the output of the command before, or else the last one
	for _, s := range steps(b.text) {
		out, err := m.run(word.ReplaceAllString(s.command, id))
		if found := shownID.FindStringSubmatch(out); found != nil {
			id = found[1] + found[2] + found[3]
		}
		if !matches(s.output, out) {
			if !update() {
				t.Errorf("%s:%d\n$ %sprints (%v)\n%s\nand the page shows\n%s", b.page, b.line, s.command, err, out, s.output)
			}
			s.output = varying.ReplaceAllString(strings.TrimRight(out, "\n"), "$1…") + "\n"
		}
		command := strings.ReplaceAll(strings.TrimRight(s.command, "\n"), "\n", "\n> ")
		now.WriteString("$ " + command + "\n" + s.output)
	}
	return strings.Replace(text, b.text, now.String(), 1)
}

// update reports whether the tests run with -update, a flag of mcpkittest.
func update() bool { return flag.Lookup("update").Value.String() == "true" }

// confines reports whether bash runs commands on this machine.
func confines(m *machine) bool {
	_, err := m.run("mcp-bash --doctor")
	return err == nil
}

// reviews reports whether bash runs commands with --changes review here.
func reviews(m *machine) bool {
	_, err := m.run(`mcp-bash --changes review --call '{"command":"true"}'`)
	return err == nil
}

// hostCommand finds the words after mcp-host, without the flags before the command.
var hostCommand = regexp.MustCompile(`\bmcp-host(?:\.exe'?)?(?: --(?:config|mcpservers) (?:'[^']*'|\S+))* ([a-z].*)`)

// Subcommands of mcp-host that pages name in code exist, and so do the clients and products
// that these commands name.
func TestSubcommandsExist(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	known := map[string]string{} // help texts
	help := func(command string) string {
		if _, ok := known[command]; !ok {
			known[command], _ = m.run(command + " --help") //nolint:errcheck // seen by the text
		}
		return known[command]
	}
	for _, page := range documents(t) {
		code := spans(t, page)
		for _, b := range blocks(t, page) {
			if b.language == "sh" || b.language == "console" {
				code = append(code, strings.Split(b.text, "\n")...)
			}
		}
		for _, line := range code {
			for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";|&)", r) }) {
				found := hostCommand.FindStringSubmatch(part)
				if found == nil {
					continue
				}
				words := strings.Fields(strings.TrimRight(found[1], ".,"))
				command := "mcp-host " + words[0]
				require.Contains(t, help(command), "\n  "+command, "%s: %s", page, line)
				if len(words) == 1 || !regexp.MustCompile(`^[a-z][a-z-]*$`).MatchString(words[1]) {
					continue
				}
				subcommand := regexp.MustCompile(`(?m)^  ` + words[1] + ` |\[(?:[a-z]+\|)*` + words[1] + `[|\]]`) // in the list, or in the usage
				switch {
				case strings.Contains(help(command), "\nAvailable Commands:\n"):
					require.True(t, slices.Contains(programs, words[1]) || subcommand.MatchString(help(command)), "%s: %s", page, line)
					if words[1] == "import" && len(words) > 2 && regexp.MustCompile(`^[a-z-]+$`).MatchString(words[2]) {
						require.Contains(t, help(command+" import"), words[2], "%s: %s", page, line)
					}
				case words[0] == "install" || words[0] == "uninstall":
					require.Contains(t, help(command), words[1], "%s: %s", page, line)
				}
			}
		}
	}
	require.Greater(t, len(known), 20)
}

// A flag that a page names by itself is one of some program's.
func TestNamedFlagsExist(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	root, err := m.run("mcp-host --help")
	require.NoError(t, err)
	commands := []string{"mcp-host approvals approve", "mcp-host approvals list", "mcp-host config check", "mcp-host config import"}
	for _, sub := range regexp.MustCompile(`(?m)^  ([a-z]+) +\S`).FindAllStringSubmatch(root, -1) {
		commands = append(commands, "mcp-host "+sub[1])
	}
	for _, tool := range programs {
		commands = append(commands, "mcp-"+tool)
	}
	help, err := m.run(strings.Join(commands, " --help; ") + " --help")
	require.NoError(t, err)
	known := map[string]bool{"--help": true}
	for _, flag := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(help, -1) {
		known[flag] = true
	}
	for _, page := range documents(t) {
		for _, code := range inline.FindAllString(fenced.ReplaceAllString(read(t, page), ""), -1) {
			for _, flag := range regexp.MustCompile("(?:^`|\\[\")(--[a-z][a-z-]*)").FindAllStringSubmatch(code, -1) { // alone, or in a list of arguments
				require.True(t, known[flag[1]], "%s names %s, which no help describes", page, flag[1])
			}
		}
	}
}

// helped is the part of a command that --help describes: program and subcommands.
var helped = regexp.MustCompile("mcp-(?:ls|glob|grep|view|edit|replace|bash|dispatch_agent|host)\\b[^`\n|;&#]*")

// Flags that a page names with a command are those that its help describes.
func TestFlagsExist(t *testing.T) {
	onlyUnix(t)
	m := newMachine(t)
	help := map[string]string{}
	for _, page := range documents(t) {
		for _, command := range helped.FindAllString(strings.ReplaceAll(read(t, page), "\\\n", " "), -1) {
			if before, _, ok := strings.Cut(command, " -- "); ok {
				command = before
			}
			fields := strings.Fields(command)
			words := []string{strings.TrimRight(fields[0], ",.:;]")}
			for _, word := range fields[1:] {
				if !regexp.MustCompile(`^[a-z]+$`).MatchString(word) || fields[0] != "mcp-host" || len(words) == 3 {
					break
				}
				words = append(words, word)
			}
			for _, word := range fields {
				name, _, _ := strings.Cut(word, "=")
				name = strings.TrimRight(name, ".,;:)]…'\"")
				name = strings.TrimLeft(name, "[")
				if !regexp.MustCompile(`^--[a-z][a-z-]*$`).MatchString(name) || name == "--help" {
					continue
				}
				key := strings.Join(words, " ")
				if _, ok := help[key]; !ok {
					help[key], _ = m.run(key + " --help") //nolint:errcheck // no subcommand: the text is that of its parent
				}
				require.Regexp(t, name+`(?:[^a-z-]|$)`, help[key], "%s: %s", page, command)
			}
		}
	}
	require.Greater(t, len(help), 10)
}
