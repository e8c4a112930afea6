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
	fs := c.Flags
	fs.StringVar(&c.set.call, "call", "", "make one call with these arguments, a `JSON` object (- reads them from standard input), print the answer and exit")
	fs.Var(&c.set.schema, "schema", "print the tools' definitions as JSON and exit; --schema=openai prints them for OpenAI's strict mode")
	fs.BoolVar(&c.set.version, "version", false, "print the version and exit")
	fs.BoolVar(&c.set.structured, "structured", false, "for programs: return the whole answer as structuredContent, and in one-shot calls the rows as objects")
	fs.BoolVar(&c.set.text, "text", false, "print one-shot answers as text instead of JSON and errors on standard error; exit as a failed command does")
	fs.Var(&c.set.maxTokens, "max-tokens", "limit a result to `N` tokens of 4 bytes (default: set by the tool, mostly 12000)")
	fs.Var(&c.set.logLevel, "log-level", "what to log to standard error: `LEVEL` is error, warn, info, debug or trace (trace adds the messages, redacted)")
}

// fileArgument takes a plain argument that names a file out of the others, and
// checks the others. A single argument that names nothing, in a directory that
// exists, counts as a file if the command shows files: the call then reports
// what is missing and names what is near. Unless roots are given, too, the root
// is the working directory, or the file's own where it is elsewhere.
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

// showsFile reports whether a plain argument is a file to show: one that
// exists, or one that is missing in a directory that exists. refused is what
// CheckPositional says of the argument.
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

// callGiven reports whether --call was given, if only with an empty value.
func callGiven(fs *flag.FlagSet) bool {
	seen := false
	fs.Visit(func(f *flag.Flag) { seen = seen || f.Name == "call" })
	return seen
}

// tokenFlag is a number of tokens.
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

// schemaFlag is --schema, --schema=mcp or --schema=openai.
type schemaFlag string

func (f *schemaFlag) String() string { return string(*f) }
func (f *schemaFlag) asked() bool    { return *f != "" }

// IsBoolFlag lets --schema stand alone.
func (f *schemaFlag) IsBoolFlag() bool { return true }

// Set takes the format.
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

// packageComment returns the text of the comment that stands right above the
// package clause of a Go file. Only // comments are known.
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
