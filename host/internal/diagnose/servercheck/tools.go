package servercheck

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/validate"
	"github.com/toolroom-mcp/toolroom/internal/textfmt"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// A tool holds the checked members of a definition.
type tool struct {
	Name        string                     `json:"name"`
	Description string                     `json:"description"`
	Input       json.RawMessage            `json:"inputSchema"`
	Output      json.RawMessage            `json:"outputSchema"`
	Annotations map[string]json.RawMessage `json:"annotations"`
}

// maxPages bounds the pages of a list.
const maxPages = 100

// listTools fetches all tools and checks the answers. meta is the member _meta of
// params for protocol version 2026-07-28, or "". It returns nil if the list cannot be
// read.
func (r *report) listTools(s *session, meta string) (tools []tool) {
	const name = "tools/list"
	cursor := ""
	for page := 0; page < maxPages; page++ {
		params := strings.Trim(meta, ",")
		if cursor != "" {
			params = strings.Trim(params+`,"cursor":`+string(jsonrpc.AppendString(nil, cursor)), ",")
		}
		m, err := s.request("tools/list", "{"+params+"}")
		if err != nil {
			r.add(Bad, name, "%v", err)
			return nil
		}
		var result struct {
			Tools  []json.RawMessage `json:"tools"`
			Cursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(m.Result, &result); m.Error != nil || err != nil || result.Tools == nil {
			r.add(Bad, name, "the answer was %s", summarize(m))
			return nil
		}
		for _, definition := range result.Tools {
			var t tool
			if err := json.Unmarshal(definition, &t); err != nil {
				r.add(Bad, name, "a definition is malformed: %v: %s", err, excerpt(string(definition)))
				continue
			}
			tools = append(tools, t)
		}
		if cursor = result.Cursor; cursor == "" {
			break
		}
	}
	switch {
	case cursor != "":
		r.add(Bad, name, "its pages do not end; stopped after %d", maxPages)
	case len(tools) == 0:
		r.add(Weak, name, "no tools")
	default:
		r.add(Good, name, "%s", textfmt.Count(len(tools), "tool"))
	}
	return tools
}

// A toolFindings lists the errors and weaknesses of a tool.
type toolFindings struct{ bad, weak []string }

// addFinding adds the check name: bad or weak with the first texts of f, or good with the
// text good if f has none.
func (r *report) addFinding(name, good string, f toolFindings) {
	const most = 5
	cut := func(all []string) string {
		if len(all) > most {
			all = append(slices.Clone(all[:most]), fmt.Sprintf("and %d more", len(all)-most))
		}
		return strings.Join(all, "; ")
	}
	switch {
	case len(f.bad) > 0:
		r.add(Bad, name, "%s", cut(f.bad))
	case len(f.weak) > 0:
		r.add(Weak, name, "%s", cut(f.weak))
	default:
		r.add(Good, name, "%s", good)
	}
}

// Lengths that are too long for a model that reads them in every turn, in bytes.
const (
	longDescription = 4 << 10
	longDefinition  = 16 << 10
)

// checkDefinitions reports faults in the tools' names, schemas, descriptions and
// annotations.
func (r *report) checkDefinitions(tools []tool) {
	if len(tools) == 0 {
		return
	}
	var names, schemas, texts, notes toolFindings
	seen := map[string]bool{}
	for _, t := range tools {
		shown := fmt.Sprintf("%q", excerpt(t.Name))
		switch {
		case seen[t.Name]:
			names.bad = append(names.bad, shown+" appears twice")
		case !isValidName(t.Name, "_-./", 128):
			names.bad = append(names.bad, shown+" does not have 1 to 128 letters, digits, _ - . /")
		case !isValidName(t.Name, "_-", 64):
			names.weak = append(names.weak, shown+" does not have the 1 to 64 letters, digits, _ - that model APIs accept: hosts rename it")
		}
		seen[t.Name] = true
		t.checkSchemas(shown, &schemas)
		switch size := len(t.Description); {
		case strings.TrimSpace(t.Description) == "":
			texts.weak = append(texts.weak, shown+" has none")
		case size > longDescription:
			texts.weak = append(texts.weak, fmt.Sprintf("that of %s has %d bytes, which a model reads in every turn", shown, size))
		}
		if size := len(t.Input) + len(t.Output); size > longDefinition {
			texts.weak = append(texts.weak, fmt.Sprintf("the schemas of %s have %d bytes", shown, size))
		}
		t.checkAnnotations(shown, &notes)
	}
	r.addFinding("names", "unique, with characters that model APIs accept", names)
	r.addFinding("schemas", "all are JSON Schema 2020-12 of objects", schemas)
	r.addFinding("descriptions", "present, none too long", texts)
	r.addFinding("annotations", "complete and consistent", notes)
}

// isValidName reports whether a name is not empty, has at most most bytes, and consists
// of ASCII letters, digits and the characters in others.
func isValidName(name, others string, most int) bool {
	return name != "" && len(name) <= most && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(others, c)
	})
}

// checkSchemas adds faults of the input and output schema to f. shown names the tool.
func (t tool) checkSchemas(shown string, f *toolFindings) {
	check := func(what string, schema json.RawMessage) {
		var s struct {
			Type any `json:"type"`
		}
		if err := json.Unmarshal(schema, &s); err != nil {
			f.bad = append(f.bad, fmt.Sprintf("the %s of %s is not an object", what, shown))
			return
		}
		if s.Type != "object" {
			f.bad = append(f.bad, fmt.Sprintf(`the %s of %s is not of type "object"`, what, shown))
		}
		if err := validate.CheckSchema(schema); err != nil {
			f.bad = append(f.bad, fmt.Sprintf("the %s of %s: %s", what, shown, excerpt(err.Error())))
		}
	}
	if len(t.Input) == 0 {
		f.bad = append(f.bad, shown+" has no inputSchema")
	} else {
		check("inputSchema", t.Input)
	}
	if len(t.Output) > 0 && !bytes.Equal(t.Output, []byte("null")) {
		check("outputSchema", t.Output)
	}
}

// checkAnnotations adds to f faults of the annotations, and a remark if a tool is
// read-only and destructive or has no hints at all. shown names the tool.
func (t tool) checkAnnotations(shown string, f *toolFindings) {
	missing := []string{}
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		switch value := string(t.Annotations[hint]); value {
		case "true", "false":
		case "":
			missing = append(missing, hint)
		default:
			f.bad = append(f.bad, fmt.Sprintf("%s of %s is %s, not a boolean", hint, shown, excerpt(value)))
		}
	}
	switch {
	case string(t.Annotations["readOnlyHint"]) == "true" && string(t.Annotations["destructiveHint"]) == "true":
		f.weak = append(f.weak, shown+" is marked as read-only and destructive")
	case len(missing) == 4:
		f.weak = append(f.weak, shown+" has no hints: clients assume the worst case")
	}
}

// checkRefusals checks that invalid calls are refused: of an unknown tool, and with
// invalid arguments.
func (r *report) checkRefusals(s *session, tools []tool) {
	m, err := s.request("tools/call", `{"name":"no_such_tool_here","arguments":{}}`)
	r.checkRefused("unknown tool", "", m, err)
	i := slices.IndexFunc(tools, func(t tool) bool { return t.hasRequired() && string(t.Annotations["readOnlyHint"]) == "true" })
	if i < 0 {
		i = slices.IndexFunc(tools, tool.hasRequired)
	}
	arguments := "{}"
	if i < 0 {
		i, arguments = mistypedCall(tools)
	}
	if i < 0 {
		r.add(Good, "invalid arguments", "not tried: no tool has required arguments, and no read-only tool has a typed one")
		return
	}
	name := jsonrpc.AppendString(nil, tools[i].Name)
	m, err = s.request("tools/call", `{"name":`+string(name)+`,"arguments":`+arguments+`}`)
	r.checkRefused("invalid arguments", "of "+excerpt(tools[i].Name)+" ", m, err)
}

// mistypedCall returns the index of a read-only tool with a parameter of a simple type,
// and arguments with an object instead; -1 if no tool has such a parameter.
func mistypedCall(tools []tool) (i int, arguments string) {
	for i, t := range tools {
		var s struct {
			Properties map[string]struct {
				Type any `json:"type"`
			} `json:"properties"`
		}
		if string(t.Annotations["readOnlyHint"]) != "true" || json.Unmarshal(t.Input, &s) != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains([]any{"string", "integer", "number", "boolean"}, s.Properties[name].Type) {
				return i, "{" + string(jsonrpc.AppendString(nil, name)) + `:{"of":"another type"}}`
			}
		}
	}
	return -1, ""
}

// hasRequired reports whether the tool has a required argument.
func (t tool) hasRequired() bool {
	var s struct {
		Required []string `json:"required"`
	}
	return json.Unmarshal(t.Input, &s) == nil && len(s.Required) > 0
}

// checkRefused adds the check name: that an answer is an error, either a JSON-RPC error
// or a result with isError. what names the call in the text.
func (r *report) checkRefused(name, what string, m jsonrpc.Message, err error) {
	var result struct {
		IsError bool `json:"isError"`
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	}
	code, text := errorOf(m)
	switch {
	case err != nil:
		r.add(Bad, name, "%v", err)
	case code == jsonrpc.CodeInvalidParams:
		r.add(Good, name, "%srefused with %d: %s", what, code, text)
	case code != 0:
		r.add(Weak, name, "%srefused with %d instead of %d: %s", what, code, jsonrpc.CodeInvalidParams, text)
	case json.Unmarshal(m.Result, &result) != nil:
		r.add(Bad, name, "%sanswered with an invalid result: %s", what, summarize(m))
	case !result.IsError:
		r.add(Bad, name, "%snot refused: %s", what, summarize(m))
	case len(result.Content) == 0 || strings.TrimSpace(result.Content[0].Text) == "":
		r.add(Bad, name, "%sanswered with isError, but not why", what)
	default:
		r.add(Good, name, "%srefused as a result with isError: %s", what, excerpt(result.Content[0].Text))
	}
}
