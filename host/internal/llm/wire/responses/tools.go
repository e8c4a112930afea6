// Package responses decodes the tools and input items of OpenAI's Responses API, and
// encodes its output items.
package responses

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// A RequestError reports a member of a request that cannot be decoded.
type RequestError struct {
	Path    string // path of the member, such as input/3
	Message string
}

// Error returns Message.
func (f *RequestError) Error() string { return f.Message }

// requestErrorf returns a RequestError for the member at a path.
func requestErrorf(path, format string, args ...any) error {
	return &RequestError{path, fmt.Sprintf(format, args...)}
}

// A Callable says how call items name a tool that the request declares: the model knows it
// as ModelName.
type Callable struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Custom    bool   `json:"custom,omitempty"` // its input is text instead of an object
}

// ModelName returns the tool's name in requests to the model: NAMESPACE__NAME in a
// namespace.
func (c Callable) ModelName() string { return modelName(c.Namespace, c.Name) }

// modelName returns the name of a namespace's tool for the model.
func modelName(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// Tools holds the tools that a request declares.
type Tools struct {
	Tools     []llm.Tool
	Callables map[string]Callable // by ModelName

	// Ignored lists the types of built-in tools (web_search, local_shell and the
	// like), which no model here supports.
	Ignored []string
}

// Callable returns the tool that the model called as name; for an undeclared one, a
// function of this name.
func (t *Tools) Callable(name string) Callable {
	if c, ok := t.Callables[name]; ok {
		return c
	}
	return Callable{Name: name}
}

// DecodeTools decodes the tools of a request, from the values of tools and input: items of
// the input can also declare tools (additional_tools). The model gets a custom tool as a
// function with a text input, and a tool of a namespace as NAMESPACE__NAME. The error is a
// *RequestError.
func DecodeTools(list, input *tree.Value) (*Tools, error) {
	t := &Tools{Callables: map[string]Callable{}}
	for i, item := range list.PeekItems() {
		if err := t.addTool(item, "", llm.AppendIndex("tools", i)); err != nil {
			return nil, err
		}
	}
	for i, item := range input.PeekItems() {
		if stringMember(item, "type") != additionalToolsType {
			continue
		}
		for j, tool := range item.Get("tools").PeekItems() {
			if err := t.addTool(tool, "", llm.AppendIndex(llm.AppendIndex("input", i)+"/tools", j)); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// addTool adds a tool, or those of a namespace. Unknown types are collected in Ignored. It
// returns a RequestError for a tool without a type or name, and for a namespace in a
// namespace.
func (t *Tools) addTool(v *tree.Value, namespace, at string) error {
	kind, name := stringMember(v, "type"), stringMember(v, "name")
	switch {
	case kind == "":
		return requestErrorf(at, "a tool has no type")
	case kind != "function" && kind != "custom" && kind != "namespace":
		if !slices.Contains(t.Ignored, kind) {
			t.Ignored = append(t.Ignored, kind)
		}
		return nil
	case name == "":
		return requestErrorf(at, "a tool of type %s has no name", kind)
	case kind == "namespace":
		for i, inner := range v.Get("tools").PeekItems() {
			if stringMember(inner, "type") == "namespace" {
				return requestErrorf(at, "the namespace %.80s contains a namespace", name)
			}
			if err := t.addTool(inner, name, llm.AppendIndex(at+"/tools", i)); err != nil {
				return err
			}
		}
		return nil
	}
	c := Callable{Name: name, Namespace: namespace, Custom: kind == "custom"}
	tool := llm.Tool{Name: c.ModelName(), Description: stringMember(v, "description"), Strict: v.Get("strict").True()}
	if c.Custom {
		tool.Strict = false
		tool.Input = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)
		if grammar := stringMember(v.Get("format"), "definition"); grammar != "" {
			tool.Description += "\n\ninput must follow this grammar (" + stringMember(v.Get("format"), "syntax") + "):\n" + grammar
		}
	} else if p := v.Get("parameters"); p.Is(tree.Object) {
		tool.Input = p.JSON()
	}
	t.Tools = append(t.Tools, tool)
	t.Callables[tool.Name] = c
	return nil
}

// DecodeChoice decodes tool_choice; nil if it is absent or null. The error is a
// *RequestError.
func DecodeChoice(v *tree.Value) (*llm.Choice, error) {
	const at = "tool_choice"
	if v == nil || v.Kind == tree.Null {
		return nil, nil
	}
	if v.Is(tree.String) {
		mode := llm.ChoiceMode(v.Text)
		if !slices.Contains([]llm.ChoiceMode{llm.ChoiceAuto, llm.ChoiceNone, llm.ChoiceRequired}, mode) {
			return nil, requestErrorf(at, "tool_choice must be auto, none, required or an object, not %.40q", v.Text)
		}
		return &llm.Choice{Mode: mode}, nil
	}
	named := func(v *tree.Value) (string, error) {
		kind, name := stringMember(v, "type"), stringMember(v, "name")
		if kind != "function" && kind != "custom" || name == "" {
			return "", requestErrorf(at, "tool_choice must name a function or a custom tool, not a tool of type %.40q", kind)
		}
		return modelName(stringMember(v, "namespace"), name), nil
	}
	if stringMember(v, "type") != "allowed_tools" {
		name, err := named(v)
		return &llm.Choice{Mode: llm.ChoiceRequired, ToolNames: []string{name}}, err
	}
	c := &llm.Choice{Mode: llm.ChoiceMode(stringMember(v, "mode"))}
	if c.Mode != llm.ChoiceAuto && c.Mode != llm.ChoiceRequired {
		return nil, requestErrorf(at, "the mode of allowed_tools must be auto or required, not %.40q", c.Mode)
	}
	for _, item := range v.Get("tools").PeekItems() {
		name, err := named(item)
		if err != nil {
			return nil, err
		}
		c.ToolNames = append(c.ToolNames, name)
	}
	if len(c.ToolNames) == 0 {
		return nil, requestErrorf(at, "allowed_tools names no tool")
	}
	return c, nil
}

// stringMember returns a member that is a string; "" for any other value.
func stringMember(v *tree.Value, name string) string {
	if m := v.Get(name); m.Is(tree.String) {
		return m.Text
	}
	return ""
}
