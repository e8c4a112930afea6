package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A definition is a tool as tools/list shows it.
type definition struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Annotations map[string]bool `json:"annotations"`
}

// A parameter is a property of a tool's schema.
type parameter struct {
	Name        string
	Type        string       `json:"type"`
	Description string       `json:"description"`
	Default     any          `json:"default"`
	Minimum     *json.Number `json:"minimum"`
	Maximum     *json.Number `json:"maximum"`
	Enum        []string     `json:"enum"`
	Items       *parameter   `json:"items"`
}

// notes describe parameters whose description in the schema is missing or
// short, to save the model's context.
var notes = map[string]string{
	"ls.depth":                     "levels of directories",
	"ls.no_ignore":                 "include ignored files",
	"ls.limit":                     "maximum number of entries; 0: no limit",
	"glob.limit":                   "maximum number of paths; 0: no limit",
	"ls.offset":                    "number of entries to skip",
	"glob.pattern":                 "pattern for names or paths",
	"glob.no_ignore":               "include ignored files",
	"glob.offset":                  "number of paths to skip",
	"glob.sort":                    "`mtime`: newest first",
	"glob.absolute":                "return absolute paths",
	"grep.output_mode":             "matching lines, paths only, or the number of matches per file",
	"grep.-A":                      "lines to show after each match",
	"grep.-B":                      "lines to show before each match",
	"grep.-C":                      "lines to show before and after each match",
	"grep.-i":                      "ignore case",
	"grep.-n":                      "show line numbers",
	"grep.literal":                 "search plain text, not a regular expression",
	"grep.no_ignore":               "include ignored files",
	"grep.offset":                  "number of matches (or files) to skip",
	"grep.sort":                    "`mtime`: newest first",
	"view.tail":                    "read the last N lines",
	"view.section":                 "markdown heading or symbol to read",
	"view.paths":                   "several files in one call, each with `file_path`, `offset` and `limit`",
	"edit.file_path":               "file to change",
	"edit.old_string":              "text to replace",
	"edit.replace_all":             "replace every match",
	"edit.edits":                   "several changes in one call, each with `old_string`, `new_string` and `replace_all`; all of them are made, or none",
	"edit.dry_run":                 "show the diff only",
	"edit.encoding":                "encoding of the file; default: detected",
	"replace.file_path":            "file to write",
	"replace.content":              "complete new text",
	"replace.encoding":             "encoding to write; default: that of the existing file",
	"replace.overwrite":            "write even if the file has changed",
	"replace.dry_run":              "show the diff only",
	"bash.workdir":                 "working directory for this call",
	"bash.command":                 "command line for bash",
	"bash.stdin":                   "standard input of the command; default: empty",
	"bash.description":             "what the command does, for people who read the call",
	"bash_job.action":              "what to do",
	"dispatch_agent.description":   "what the agent does, for people who read the call",
	"view.encoding":                "encoding of the file; default: detected",
	"edit.expected_replacements":   "replace every match, but fail unless there are exactly this many",
	"edit.etag":                    "etag that view showed; the call fails if the lines to change have changed since",
	"edit.strict":                  "only line endings may differ from the file",
	"edit.undo":                    "revert the last change that edit or replace made to the file",
	"replace.etag":                 "etag that view showed; the call fails if the file has changed since",
	"bash.session":                 "name of a session with its own working directory and variables",
	"bash.timeout":                 "milliseconds until the command is killed; default 120000, or none with `run_in_background`",
	"bash_job.job_id":              "the job; required except for `list`",
	"bash_job.since":               "return output from this byte offset on; a negative value counts from the end; default: where the last answer ended",
	"bash_job.wait_ms":             "milliseconds to wait until the job ends or `wait_for` matches; default 0, or 30000 with `wait_for`",
	"view.metadata":                "show type, size, encoding and times instead of the content",
	"grep.max_per_file":            "matches shown per file; default 20; without limit if `path` is a file",
	"grep.multiline":               "matches may span lines; `.` also matches a line break",
	"view.file_path":               "file to show: absolute, or relative to the first root; not needed with `paths`",
	"bash_job.wait_for":            "wait until the output matches this regular expression",
	"bash_job.input":               "for `write`: the text to send (\\n is Enter, \\u0004 at the end closes the input); for `signal`: the name of the signal, such as INT",
	"dispatch_agent.prompt":        "the whole task; may be omitted only with `agent_id`",
	"dispatch_agent.model":         "`NAME`, `PROVIDER/NAME` or `PROVIDER` from the configuration; default: the configured model",
	"dispatch_agent.max_tokens":    "maximum tokens of all turns together, input and output",
	"dispatch_agent.max_turns":     "maximum turns of the model; default 25",
	"dispatch_agent.timeout":       "time limit in seconds; default 600",
	"dispatch_agent.wait_ms":       "milliseconds to wait for the report before the call returns an `agent_id`; default 45000",
	"dispatch_agent.agent_id":      "agent to wait for or to continue",
	"dispatch_agent.output_schema": "JSON Schema that the report must match",
}

// toolBinaries maps the tools that do not have a binary of the same name.
var toolBinaries = map[string]string{"bash_job": "bash"}

// find returns the definition of a tool.
func find(bin, tool string) (definition, error) {
	binary := tool
	if other := toolBinaries[tool]; other != "" {
		binary = other
	}
	out, err := run(bin, "mcp-"+binary, "--schema")
	if err != nil {
		return definition{}, err
	}
	var list struct {
		Tools []definition `json:"tools"`
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return definition{}, err
	}
	for _, d := range list.Tools {
		if d.Name == tool {
			return d, nil
		}
	}
	return definition{}, fmt.Errorf("mcp-%s does not serve %s", binary, tool)
}

// parameters returns the table of a tool's parameters in the schema's order,
// and a line with its annotations.
func parameters(bin, tool string) (string, error) {
	d, err := find(bin, tool)
	if err != nil {
		return "", err
	}
	list, required, err := properties(d.InputSchema)
	if err != nil {
		return "", err
	}
	t := newTable("parameter", "type", "meaning")
	for _, p := range list {
		meaning, err := p.meaning(tool, slices.Contains(required, p.Name))
		if err != nil {
			return "", err
		}
		t.row("`"+p.Name+"`", p.kind(), meaning)
	}
	var hints []string
	for _, name := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		hints = append(hints, fmt.Sprintf("`%s: %v`", name, d.Annotations[name]))
	}
	return t.b.String() + "\nAnnotations: " + strings.Join(hints, ", ") + ".\n", nil
}

// properties returns a schema's properties in their order, and the names of
// the required ones.
func properties(schema json.RawMessage) (list []parameter, required []string, err error) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		p := parameter{Name: name.(string)}
		if err := d.Decode(&p); err != nil {
			return nil, nil, err
		}
		list = append(list, p)
	}
	return list, s.Required, nil
}

func (p parameter) kind() string {
	if p.Type == "array" && p.Items != nil {
		return "list of " + p.Items.Type + "s"
	}
	return p.Type
}

// meaning returns the description of a parameter with its default and bounds.
func (p parameter) meaning(tool string, required bool) (string, error) {
	text := cmp.Or(notes[tool+"."+p.Name], p.Description)
	words := []string{text}
	if p.Default != nil {
		words = append(words, fmt.Sprintf("default `%v`", p.Default))
	}
	if p.Minimum != nil {
		words = append(words, "at least "+p.Minimum.String())
	}
	if p.Maximum != nil {
		words = append(words, "at most "+p.Maximum.String())
	}
	if len(p.Enum) > 0 {
		words = append(words, "one of `"+strings.Join(p.Enum, "`, `")+"`")
	}
	if text == "" && len(p.Enum) == 0 {
		return "", fmt.Errorf("parameter %s.%s has no description; add one to notes", tool, p.Name)
	}
	if text == "" {
		words = words[1:]
	}
	meaning := strings.Join(words, "; ")
	if required {
		meaning = "**required**; " + meaning
	}
	return meaning, nil
}

var flagText = regexp.MustCompile(`(?m)^  (--\S+(?: .+)?)\n    \t(.+)$`)

// help returns the flags that a tool's --help describes, with their texts, in order.
func help(bin, tool string) ([][2]string, error) {
	out, err := run(bin, "mcp-"+tool, "--help")
	if err != nil {
		return nil, err
	}
	var found [][2]string
	for _, m := range flagText.FindAllStringSubmatch(out, -1) {
		found = append(found, [2]string{m[1], m[2]})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("mcp-%s --help has no flags", tool)
	}
	return found, nil
}

// flags returns the table of the flags that only this tool has; without a
// tool, of the flags that all tools have: those of ls, which has no others.
func flags(bin, tool string) (string, error) {
	common, err := help(bin, "ls")
	if err != nil {
		return "", err
	}
	list := common
	if tool != "" {
		if list, err = help(bin, tool); err != nil {
			return "", err
		}
	}
	t := newTable("flag", "meaning")
	own := 0
	for _, f := range list {
		if tool == "" || !slices.ContainsFunc(common, func(c [2]string) bool { return c[0] == f[0] }) {
			t.row("`"+f[0]+"`", f[1])
			own++
		}
	}
	if own == 0 {
		return "None besides the [common flags](README.md#command-line).\n", nil
	}
	return t.b.String(), nil
}

var commandText = regexp.MustCompile(`(?m)^  ([a-z-]+) +(\S.*)$`)

// commands returns the table of the host's commands.
func commands(bin string) (string, error) {
	out, err := run(bin, "mcp-host", "--help")
	if err != nil {
		return "", err
	}
	_, after, ok := strings.Cut(out, "\nUsage:")
	before, _, found := strings.Cut(after, "\nFlags:")
	if !ok || !found {
		return "", fmt.Errorf("mcp-host --help lists no commands")
	}
	t := newTable("command", "what it does")
	for _, m := range commandText.FindAllStringSubmatch(before, -1) {
		if m[1] != "help" && m[1] != "mcp-host" {
			t.row("`mcp-host "+m[1]+"`", m[2])
		}
	}
	return t.b.String(), nil
}
