package mcpkit

import (
	"flag"
	"fmt"
	"io"
	"strings"
)

// printHelp prints the manual: the package comment of main.go, then the flags.
func (c *Command) printHelp(w io.Writer) error {
	var b strings.Builder
	manual := packageComment(c.Source)
	if manual == "" {
		manual = c.program() + " serves " + c.Title + " as an MCP tool on standard input and output.\n"
	}
	b.WriteString(manual)
	b.WriteString("\nFlags:\n")
	c.Flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		if isBoolFlag(f) {
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

// isBoolFlag reports whether a flag may be given without a value, as package
// flag decides it.
func isBoolFlag(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// packageComment returns the text of the // comment directly above the package
// clause of a Go file; "" if the file has no such comment.
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
