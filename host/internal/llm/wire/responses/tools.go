// Package responses reads and writes the tools and the items of input and output of
// OpenAI's Responses API.
package responses

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A Fault is a member of a request that cannot be read.
type Fault struct {
	Path    string // of the member: input/3
	Message string
}

func (f *Fault) Error() string { return f.Message }

func fault(path, format string, args ...any) error {
	return &Fault{path, fmt.Sprintf(format, args...)}
}

// A Callable is a tool of the client's as its calls are written.
type Callable struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Custom    bool   `json:"custom,omitempty"` // its input is text, not an object
}

// Told returns the tool's name in requests to the model.
func (c Callable) Told() string { return told(c.Namespace, c.Name) }

func told(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// Tools are the tools that a request declares.
type Tools struct {
	Tools     []llm.Tool
	Callables map[string]Callable // by Told

	// Ignored are the types of built-in tools (web_search, local_shell …), which no
	// model here knows.
	Ignored []string
}

// Callable returns the tool with the name that the model called.
func (t *Tools) Callable(name string) Callable {
	if c, ok := t.Callables[name]; ok {
		return c
	}
	return Callable{Name: name}
}

// DecodeTools reads the tools of a request. The model gets a custom tool as a function
// with a text input, and a tool of a namespace as NAMESPACE__NAME. Items of the input may
// declare tools, too (additional_tools).
func DecodeTools(list, input *tree.Value) (*Tools, error) {
	t := &Tools{Callables: map[string]Callable{}}
	for i, item := range list.All() {
		if err := t.add(item, "", llm.Index("tools", i)); err != nil {
			return nil, err
		}
	}
	for i, item := range input.All() {
		if text(item, "type") != additional {
			continue
		}
		for j, tool := range item.Get("tools").All() {
			if err := t.add(tool, "", llm.Index(llm.Index("input", i)+"/tools", j)); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

func (t *Tools) add(v *tree.Value, namespace, at string) error {
	kind, name := text(v, "type"), text(v, "name")
	switch {
	case kind == "":
		return fault(at, "a tool has no type")
	case kind != "function" && kind != "custom" && kind != "namespace":
		if !slices.Contains(t.Ignored, kind) {
			t.Ignored = append(t.Ignored, kind)
		}
		return nil
	case name == "":
		return fault(at, "a tool of type %s has no name", kind)
	case kind == "namespace":
		for i, inner := range v.Get("tools").All() {
			if text(inner, "type") == "namespace" {
				return fault(at, "the namespace %.80s contains a namespace", name)
			}
			if err := t.add(inner, name, llm.Index(at+"/tools", i)); err != nil {
				return err
			}
		}
		return nil
	}
	c := Callable{Name: name, Namespace: namespace, Custom: kind == "custom"}
	tool := llm.Tool{Name: c.Told(), Description: text(v, "description"), Strict: v.Get("strict").True()}
	if c.Custom {
		tool.Strict = false
		tool.Input = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
		if grammar := text(v.Get("format"), "definition"); grammar != "" {
			tool.Description += "\n\ninput must follow this grammar (" + text(v.Get("format"), "syntax") + "):\n" + grammar
		}
	} else if p := v.Get("parameters"); p.Is(tree.Object) {
		tool.Input = p.JSON()
	}
	t.Tools = append(t.Tools, tool)
	t.Callables[tool.Name] = c
	return nil
}

// DecodeChoice reads tool_choice; nil: it is not given.
func DecodeChoice(v *tree.Value) (*llm.Choice, error) {
	const at = "tool_choice"
	if v == nil || v.Kind == tree.Null {
		return nil, nil
	}
	if v.Is(tree.String) {
		mode := llm.Mode(v.Text)
		if !slices.Contains([]llm.Mode{llm.Auto, llm.None, llm.Required}, mode) {
			return nil, fault(at, "tool_choice must be auto, none, required or an object, not %.40q", v.Text)
		}
		return &llm.Choice{Mode: mode}, nil
	}
	named := func(v *tree.Value) (string, error) {
		kind, name := text(v, "type"), text(v, "name")
		if kind != "function" && kind != "custom" || name == "" {
			return "", fault(at, "tool_choice must name a function or a custom tool, not a tool of type %.40q", kind)
		}
		return told(text(v, "namespace"), name), nil
	}
	if text(v, "type") != "allowed_tools" {
		name, err := named(v)
		return &llm.Choice{Mode: llm.Required, Names: []string{name}}, err
	}
	c := &llm.Choice{Mode: llm.Mode(text(v, "mode"))}
	if c.Mode != llm.Auto && c.Mode != llm.Required {
		return nil, fault(at, "the mode of allowed_tools must be auto or required, not %.40q", c.Mode)
	}
	for _, item := range v.Get("tools").All() {
		name, err := named(item)
		if err != nil {
			return nil, err
		}
		c.Names = append(c.Names, name)
	}
	if len(c.Names) == 0 {
		return nil, fault(at, "allowed_tools names no tool")
	}
	return c, nil
}

// text is a member that is a text; "" if it is none.
func text(v *tree.Value, name string) string {
	if m := v.Get(name); m.Is(tree.String) {
		return m.Text
	}
	return ""
}
