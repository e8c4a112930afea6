package mcpkit

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
)

// addFlags registers the flags that every Command has.
func (c *Command) addFlags() {
	flags := c.Flags
	flags.StringVar(&c.common.call, "call", "", "make one call with these arguments, a `JSON` object (- reads them from standard input), print the answer and exit")
	flags.Var(&c.common.schema, "schema", "print the tools' definitions as JSON and exit; --schema=openai prints them for OpenAI's strict mode")
	flags.BoolVar(&c.common.version, "version", false, "print the version and exit")
	flags.BoolVar(&c.common.structured, "structured", false, "for programs: return the whole answer as structuredContent; a single call prints lists as JSON objects instead of text")
	flags.BoolVar(&c.common.text, "text", false, "for a single call: print the answer as text instead of JSON, and errors on standard error; with bash, exit with the exit code of the command")
	flags.Var(&c.common.maxTokens, "max-tokens", "limit a result to `N` tokens of 4 bytes (default 12000; 20000 for view)")
	flags.Var(&c.common.logLevel, "log-level", "what to log to standard error: `LEVEL` is error, warn, info, debug or trace (trace also logs the protocol messages, with secrets redacted)")
}

// isCallGiven reports whether --call was given, even with an empty value.
func isCallGiven(flags *flag.FlagSet) bool {
	seen := false
	flags.Visit(func(f *flag.Flag) { seen = seen || f.Name == "call" })
	return seen
}

// tokenFlag is the value of --max-tokens; 0: not given.
type tokenFlag int

// String returns the number as text, as flag.Value needs it.
func (f *tokenFlag) String() string {
	if f == nil || *f == 0 {
		return ""
	}
	return strconv.Itoa(int(*f))
}

// Set parses a whole number of at least 1.
func (f *tokenFlag) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("want a whole number of tokens, 1 or more")
	}
	*f = tokenFlag(n)
	return nil
}

// schemaFlag is the value of --schema: "" (not given), "mcp" (--schema alone)
// or "openai".
type schemaFlag string

// String returns the format, "" if the flag was not given, as flag.Value needs
// it.
func (f *schemaFlag) String() string { return string(*f) }

// isSet reports whether --schema was given.
func (f *schemaFlag) isSet() bool { return *f != "" }

// IsBoolFlag returns true, which makes the value of --schema optional.
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

// parseInterspersed parses flags anywhere among the other arguments and returns those
// others. All arguments after "--" are positional. It stops flags from printing errors
// and its usage.
func parseInterspersed(flags *flag.FlagSet, args []string) (positional []string, err error) {
	var ignoredOutput strings.Builder
	flags.SetOutput(&ignoredOutput)
	flags.Usage = func() {}
	for len(args) > 0 {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		rest := flags.Args()
		if used := len(args) - len(rest); used > 0 && args[used-1] == "--" {
			return append(positional, rest...), nil
		}
		if len(rest) == 0 {
			break
		}
		positional = append(positional, rest[0])
		args = rest[1:]
	}
	return positional, nil
}
