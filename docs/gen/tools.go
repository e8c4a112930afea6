package main

import (
	"bytes"
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

// notes describe the parameters that a schema leaves to their names, to save
// the model's context.
var notes = map[string]string{
	"ls.depth":                   "levels of directories",
	"glob.pattern":               "pattern of names or paths",
	"grep.output_mode":           "lines, paths only, or matches per file",
	"view.paths":                 "several files in one call, each with `file_path`, `offset` and `limit`",
	"view.hex":                   "show the bytes in hexadecimal",
	"edit.file_path":             "file to change",
	"edit.replace_all":           "replace every match",
	"edit.edits":                 "several changes in one call; all of them are made, or none",
	"replace.file_path":          "file to write",
	"bash.command":               "command line for bash",
	"bash.description":           "what the command does, for people who read the call",
	"bash_job.action":            "what to do",
	"bash_job.job_id":            "the job; not needed for list",
	"bash_job.wait_ms":           "milliseconds to wait for output or the end",
	"bash_job.wait_for":          "regular expression: wait until the output matches",
	"dispatch_agent.description": "what the agent does, for people who read the call",
	"dispatch_agent.max_tokens":  "tokens of all turns, input and output",
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
	text := p.Description
	if text == "" {
		text = notes[tool+"."+p.Name]
	}
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
