package mcpkit

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// addFlags registers the flags that every Command has.
func (c *Command) addFlags() {
	flags := c.Flags
	flags.StringVar(&c.settings.call, "call", "", "make one call with these arguments, a `JSON` object (- reads them from standard input), print the answer and exit")
	flags.Var(&c.settings.schema, "schema", "print the tools' definitions as JSON and exit; --schema=openai prints them for OpenAI's strict mode")
	flags.BoolVar(&c.settings.version, "version", false, "print the version and exit")
	flags.BoolVar(&c.settings.structured, "structured", false, "for programs: return the whole answer as structuredContent; a single call prints lists as JSON objects instead of text")
	flags.BoolVar(&c.settings.text, "text", false, "for a single call: print the answer as text instead of JSON, and errors on standard error; with bash, exit with the exit code of the command")
	flags.Var(&c.settings.maxTokens, "max-tokens", "limit a result to `N` tokens of 4 bytes (default 12000; 20000 for view)")
	flags.Var(&c.settings.logLevel, "log-level", "what to log to standard error: `LEVEL` is error, warn, info, debug or trace (trace also logs the protocol messages, with secrets redacted)")
}

// fileArgument splits plain into the file to show and the root directories. A
// single argument in an existing directory counts as a file even if it is
// missing, provided that the command shows files: the call then reports it and
// suggests similar names. Without --root, the root is the working directory, or
// the file's own directory if the file is outside.
func (c *Command) fileArgument(plain []string) (file string, rest []string, err error) {
	if c.CheckPositional != nil {
		err = c.CheckPositional(plain)
	}
	for _, arg := range plain {
		if c.namesFlag(arg) && err != nil {
			return "", plain, fmt.Errorf("%w; the flag is --%s", err, arg)
		}
	}
	if c.File == "" || len(plain) != 1 {
		return "", plain, err
	}
	abs, absErr := filepath.Abs(plain[0])
	if absErr != nil || !c.showsFile(abs, err) {
		return "", plain, err
	}
	rooted := false
	c.Flags.Visit(func(f *flag.Flag) { rooted = rooted || f.Name == "root" })
	if rooted {
		return abs, nil, nil
	}
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, abs); err == nil && filepath.IsLocal(rel) {
			return rel, []string{wd}, nil
		}
	}
	return abs, []string{filepath.Dir(abs)}, nil
}

// showsFile reports whether a plain argument is a file to show: an existing
// file, or a missing name in an existing directory. refused is
// CheckPositional's error for the argument.
func (c *Command) showsFile(abs string, refused error) bool {
	info, err := os.Stat(abs)
	if err != nil {
		parent, parentErr := os.Stat(filepath.Dir(abs))
		return toolerr.Is(refused, toolerr.NotFound) && parentErr == nil && parent.IsDir()
	}
	return !info.IsDir()
}

// namesFlag reports whether an argument is the name of a flag without dashes.
func (c *Command) namesFlag(arg string) bool { return arg == "help" || c.Flags.Lookup(arg) != nil }

// callGiven reports whether --call was given, even with an empty value.
func callGiven(flags *flag.FlagSet) bool {
	seen := false
	flags.Visit(func(f *flag.Flag) { seen = seen || f.Name == "call" })
	return seen
}

// tokenFlag is the value of --max-tokens.
type tokenFlag int

func (f *tokenFlag) String() string {
	if f == nil || *f == 0 {
		return ""
	}
	return strconv.Itoa(int(*f))
}

// Set takes a whole number of at least 1.
func (f *tokenFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("want a whole number of tokens, 1 or more")
	}
	*f = tokenFlag(n)
	return nil
}

// schemaFlag is the value of --schema: "", "mcp" (--schema alone) or "openai".
type schemaFlag string

func (f *schemaFlag) String() string { return string(*f) }
func (f *schemaFlag) asked() bool    { return *f != "" }

// IsBoolFlag makes the value of --schema optional.
func (f *schemaFlag) IsBoolFlag() bool { return true }

// Set accepts the formats mcp and openai.
func (f *schemaFlag) Set(s string) error {
	switch s {
	case "true", "mcp":
		*f = "mcp"
	case "false":
		*f = ""
	case "openai":
		*f = "openai"
	default:
		return fmt.Errorf("want mcp or openai")
	}
	return nil
}

// help prints the manual: the package comment of main.go, then the flags.
func (c *Command) help(w io.Writer) error {
	var b strings.Builder
	manual := packageComment(c.Source)
	if manual == "" {
		manual = c.program() + " serves " + c.Title + " as an MCP tool on standard input and output.\n"
	}
	b.WriteString(manual)
	b.WriteString("\nFlags:\n")
	c.Flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if isBool(f) {
			value = ""
		}
		fmt.Fprintf(&b, "  --%s", f.Name)
		if value != "" {
			b.WriteString(" " + value)
		}
		b.WriteString("\n    \t" + strings.ReplaceAll(usage, "\n", "\n    \t"))
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && !strings.Contains(usage, "(default") {
			fmt.Fprintf(&b, " (default %s)", f.DefValue)
		}
		b.WriteByte('\n')
	})
	_, err := io.WriteString(w, b.String())
	return err
}

func isBool(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// packageComment returns the comment directly above the package clause of a Go
// file. It reads // comments only.
func packageComment(source string) string {
	var comment []string
	for line := range strings.Lines(source) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "package "):
			if len(comment) == 0 {
				return ""
			}
			return strings.Join(comment, "\n") + "\n"
		case strings.HasPrefix(line, "//go:"):
		case strings.HasPrefix(line, "//"):
			comment = append(comment, strings.TrimPrefix(strings.TrimPrefix(line, "//"), " "))
		default:
			comment = nil
		}
	}
	return ""
}
