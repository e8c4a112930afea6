package mcpkit

import (
	"flag"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// addFlags registers the flags that every Command has.
func (c *Command) addFlags() {
	fs := c.Flags
	fs.StringVar(&c.set.call, "call", "", "make one call with these arguments, a `JSON` object (- reads them from standard input), print the answer and exit")
	fs.Var(&c.set.schema, "schema", "print the tools' definitions as JSON and exit; --schema=openai prints them for OpenAI's strict mode")
	fs.BoolVar(&c.set.version, "version", false, "print the version and exit")
	fs.BoolVar(&c.set.structured, "structured", false, "answer one-shot calls with rows as objects where the tool has them")
	fs.Var(&c.set.maxTokens, "max-tokens", "let a result take up to `N` tokens of 4 bytes (default: the tool's own, mostly 12000)")
	fs.Var(&c.set.logLevel, "log-level", "what to log to standard error: `LEVEL` is error, warn, info, debug or trace (trace adds the messages, redacted)")
}

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

// BuildVersion returns the version that the Go tool recorded in this program; "devel" where
// it knows none.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

func printVersion(w io.Writer, program string) error {
	_, err := fmt.Fprintf(w, "%s %s (%s %s/%s)\n", program, BuildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
