package manifest

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/dialect"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/alias"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/chain"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/clientside"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/command"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/httpcall"
	"github.com/toolroom-mcp/toolroom/host/internal/declared/mock"
	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/validate"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

// apiGroup is the prefix of a manifest's apiVersion.
const apiGroup = "promptkit.altairalabs.ai/v1"

// readManifest adds the tool of a manifest with apiVersion, kind, metadata and spec.
func (s *Set) readManifest(file string, tree *dialect.Tree, opt Options) {
	name := tree.Get("metadata").Get("name")
	if spec := tree.Get("spec").Get("name"); spec.IsText() && spec.Text != "" {
		name = spec
	}
	t := Tool{File: file, Line: tree.Line}
	if name != nil {
		t.Name = name.Text
	}
	r := s.newReader(&t, false, opt)
	if kind := tree.Get("kind"); kind.Text != "Tool" {
		r.addProblem(kind, "kind", "is %s; want Tool", dialect.ShownName(kind.Text))
		return
	}
	version := tree.Get("apiVersion")
	if !version.IsText() || version.Text != apiGroup && !strings.HasPrefix(version.Text, apiGroup+"alpha") && !strings.HasPrefix(version.Text, apiGroup+"beta") {
		r.addProblem(version, "apiVersion", "want %s", apiGroup)
		return
	}
	if !tree.Get("spec").IsMap() {
		r.addProblem(tree.Get("spec"), "spec", "is missing: it describes the tool")
		return
	}
	var ignored string
	r.readFields("", tree, []field{
		{"apiVersion", nil, nil}, {"kind", nil, nil}, {"spec", nil, nil}, {"$schema", nil, nil},
		{"metadata", nil, func(path string, v *dialect.Tree) {
			r.readFields(path, v, []field{
				r.textField("name", &ignored), r.textField("namespace", &t.Namespace),
				r.textField("version", &t.Version), {"labels", nil, nil}, {"annotations", nil, nil},
			})
		}},
	})
	r.readSpec("spec", tree.Get("spec"))
	s.addTool(r)
}

// readTool adds the tool of an entry of the section tools. name is its key in a map, ""
// in a list. strict makes unknown fields a problem.
func (s *Set) readTool(file, name string, line int, tree *dialect.Tree, strict bool, opt Options) {
	t := Tool{Name: name, File: file, Line: line}
	if own := tree.Get("name"); own.IsText() && name == "" {
		t.Name = own.Text
	}
	r := s.newReader(&t, strict, opt)
	if !tree.IsMap() {
		r.addProblem(tree, "", "want a map that describes the tool, not %s", tree.KindName())
		return
	}
	if tree.Get("kind") != nil || tree.Get("spec") != nil {
		r.addProblem(tree, "", "a whole manifest belongs in a list under tools:, or in a file")
		return
	}
	r.readSpec("", tree)
	s.addTool(r)
}

// newReader returns a reader for the tool t. strict makes unknown fields a problem.
func (s *Set) newReader(t *Tool, strict bool, opt Options) *reader {
	return &reader{set: s, tool: t, strict: strict, opt: opt, problemsBefore: len(s.Problems)}
}

// addTool adds the tool of r to s.Tools, unless it has no mode, has problems or is
// withheld.
func (s *Set) addTool(r *reader) {
	if r.tool.Mode != "" && !r.hasProblems() && !r.withheld {
		s.Tools = append(s.Tools, *r.tool)
	}
}

// readSpec reads the fields of the tool, which are in the map v, and checks them. A
// tool that is not enabled gets no mode.
func (r *reader) readSpec(path string, v *dialect.Tree) {
	t := r.tool
	enabled := true
	name, mode := t.Name, ""
	var readOnly, idempotent bool
	p := modeParts{&mock.Config{}, &httpcall.Config{}, &chain.Config{}, &alias.Config{}, &command.Config{}, &clientside.Config{}}
	r.readFields(path, v, slices.Concat([]field{
		r.textField("name", &name), r.textField("namespace", &t.Namespace), r.textField("title", &t.Title),
		r.textField("description", &t.Description), r.textField("mode", &mode), r.textField("version", &t.Version),
		r.timeoutField(&t.Timeout),
		r.schemaField("input_schema", &t.Input, "parameters"), r.schemaField("output_schema", &t.Output),
		r.boolField("enabled", func(on bool) { enabled = on }),
		r.boolField("read_only", func(on bool) { readOnly, t.ReadOnly = on, &readOnly }),
		r.boolField("idempotent", func(on bool) { idempotent, t.Idempotent = on, &idempotent }),
		{"annotations", nil, r.readAnnotations},
		{"http", nil, r.httpReader(p.http)}, {"chain", nil, r.chainReader(p.chain)}, {"mcp", nil, r.mcpReader(p.mcp)},
		{"exec", nil, r.execReader(p.exec)}, {"client", nil, r.clientReader(p.client)}, {"a2a", nil, nil},
	}, r.mockFields(p.mock)))
	if !enabled {
		return
	}
	if t.Name = name; t.Name == "" || len(t.Name) > 128 || strings.ContainsFunc(t.Name, func(c rune) bool { return c < ' ' || c == 0x7f }) {
		r.addProblem(v, joinPath(path, "name"), "want a name of 1 to 128 characters, none of them a control character")
		return
	}
	if t.Input == nil {
		t.Input = json.RawMessage(`{"type":"object"}`)
	}
	r.setMode(path, v, mode, p)
}

// modeParts holds the settings of each mode while a tool is read.
type modeParts struct {
	mock   *mock.Config
	http   *httpcall.Config
	chain  *chain.Config
	mcp    *alias.Config
	exec   *command.Config
	client *clientside.Config
}

// setMode sets the tool's mode, which is inferred from the fields if mode is "", and
// its settings. It adds a problem for an unknown mode and for wrong settings.
func (r *reader) setMode(path string, v *dialect.Tree, mode string, parts modeParts) {
	t := r.tool
	if mode == "" {
		if mode = r.inferredMode(v); mode == "" {
			r.addProblem(v, joinPath(path, "mode"), "is missing; want one of %s", strings.Join(modes(), ", "))
			return
		}
	}
	if mode == "live" {
		mode = HTTP
	}
	if !slices.Contains(modes(), mode) {
		r.addProblem(v, joinPath(path, "mode"), "is %s; want one of %s%s", dialect.ShownName(mode), strings.Join(modes(), ", "), dialect.Nearest(mode, modes()))
		return
	}
	t.Mode = mode
	err := r.setModePart(path, v, parts)
	if err != nil {
		r.reportFieldError(path, v, err)
		return
	}
	if mode == Mock && t.Mock.Result != nil && t.Output != nil {
		if err := validate.Check(t.Output, t.Mock.Result); err != nil {
			r.addProblem(v, joinPath(path, "mock_result"), "does not fit output_schema: %v", err)
		}
	}
}

// setModePart sets the settings of the tool's mode (mock, http, chain, …) from parts,
// and checks them. It returns the error of the settings' Validate; other problems are
// added to r.
func (r *reader) setModePart(path string, v *dialect.Tree, parts modeParts) error {
	t := r.tool
	if server, own, ok := splitServerName(t.Name); ok && t.Mode == MCP && v.Get(MCP) == nil {
		parts.mcp.Server, parts.mcp.Tool = server, own
	} else if t.Mode != Mock && t.Mode != Client && v.Get(t.Mode) == nil {
		r.addProblem(v, joinPath(path, t.Mode), "is missing: it says how to execute the tool")
		return nil
	}
	switch t.Mode {
	case Mock:
		t.Mock = parts.mock
		r.checkUsedArguments(v, joinPath(path, "mock_template"), t.Mock.Uses())
		return t.Mock.Validate()
	case HTTP:
		t.HTTP = parts.http
		r.checkUsedArguments(v, joinPath(path, "http"), t.HTTP.Uses())
		return t.HTTP.Validate()
	case Chain:
		t.Chain = parts.chain
		r.checkUsedArguments(v, joinPath(path, "chain"), t.Chain.Uses())
		return t.Chain.Validate()
	case MCP:
		t.MCP = parts.mcp
		return t.MCP.Validate()
	case Exec:
		if t.Exec = parts.exec; r.hasProblems() { // with problems, the command is incomplete
			return nil
		}
		if t.Exec.Dir == "" {
			t.Exec.Dir = r.manifestDir()
		}
		return t.Exec.Validate()
	}
	t.Client = parts.client
	t.Client.Output = t.Output
	return t.Client.Validate()
}

// splitServerName splits PromptKit's name of a server's tool, mcp__SERVER__TOOL. ok is
// false for another name.
func splitServerName(name string) (server, tool string, ok bool) {
	rest, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, "__")
	return server, tool, ok
}

// reportFieldError adds a problem for an error of Validate, whose text begins with the
// path of the field below v and a colon.
func (r *reader) reportFieldError(path string, v *dialect.Tree, err error) {
	name, text, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		name, text = "", err.Error()
	}
	at := v
	for part := range strings.SplitSeq(name, ".") {
		next := at.Get(part)
		if next == nil {
			break
		}
		at = next
	}
	r.addProblem(at, strings.TrimPrefix(path+"."+name, "."), "%s", text)
}

// checkUsedArguments adds a problem for each argument in uses that the tool's input
// schema excludes.
func (r *reader) checkUsedArguments(v *dialect.Tree, path string, uses []string) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		More       json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(r.tool.Input, &schema) != nil || string(schema.More) != "false" {
		return
	}
	for _, name := range uses {
		if _, ok := schema.Properties[name]; !ok {
			r.addProblem(v, path, "uses the argument %s, which input_schema does not have", dialect.ShownName(name))
		}
	}
}

// modes returns the names of the modes.
func modes() []string { return []string{Mock, HTTP, Chain, MCP, Exec, Client} }

// inferredMode returns the mode that the fields of a tool imply, "" if they imply none.
func (r *reader) inferredMode(v *dialect.Tree) string {
	for _, mode := range modes()[1:] {
		if v.Get(mode) != nil {
			return mode
		}
	}
	for _, name := range []string{"mock_result", "mock_template", "mock_result_file", "mock_template_file"} {
		if v.Get(name) != nil {
			return Mock
		}
	}
	return ""
}

// schemaField returns a field for a JSON Schema, which is checked and stored in into.
func (r *reader) schemaField(name string, into *json.RawMessage, also ...string) field {
	return field{name, also, func(path string, v *dialect.Tree) {
		raw := v.JSON()
		if v.IsText() { // JSON in a string, as some programs write it
			raw = []byte(v.Text)
		}
		if err := validate.CheckSchema(raw); err != nil {
			r.addProblem(v, path, "invalid JSON Schema: %v", err)
			return
		}
		if name == "input_schema" && !acceptsObjects(raw) {
			r.addProblem(v, path, "want the schema of an object, because arguments are an object")
			return
		}
		*into = raw
	}}
}

// acceptsObjects reports whether the keyword type of a schema permits objects, or is
// absent.
func acceptsObjects(schema json.RawMessage) bool {
	var s struct {
		Type any `json:"type"`
	}
	if schema[0] != '{' || json.Unmarshal(schema, &s) != nil {
		return false
	}
	several, _ := s.Type.([]any) //nolint:errcheck // a single type
	return s.Type == nil || s.Type == "object" || slices.Contains(several, any("object"))
}

// readAnnotations checks MCP's hints and keeps the annotations as they are.
func (r *reader) readAnnotations(path string, v *dialect.Tree) {
	r.readFields(path, v, []field{
		{"title", nil, nil}, r.hintField("readOnlyHint"), r.hintField("destructiveHint"), r.hintField("idempotentHint"), r.hintField("openWorldHint"),
	})
	r.tool.Annotations = v.JSON()
}

// hintField returns a field for a hint of the annotations, which must be true or false.
func (r *reader) hintField(name string) field { return r.boolField(name, func(bool) {}) }

// mockFields returns the fields of the mode mock, which are stored in c.
func (r *reader) mockFields(c *mock.Config) []field {
	return []field{
		{"mock_result", nil, func(_ string, v *dialect.Tree) { c.Result = v.JSON() }},
		r.textField("mock_template", &c.Template),
		{"mock_result_file", nil, func(path string, v *dialect.Tree) {
			text, ok := r.readFileOf(path, v)
			if !ok {
				return
			}
			trees, problem := dialect.ParseTrees(v.Text, text)
			if problem != nil || len(trees) != 1 {
				r.addProblem(v, path, "want a single JSON or YAML document")
				return
			}
			c.Result = trees[0].JSON()
			if filepath.Ext(v.Text) == ".json" && jsonrpc.Valid(text) == nil {
				c.Result = text // the exact text
			}
		}},
		{"mock_template_file", nil, func(path string, v *dialect.Tree) {
			if text, ok := r.readFileOf(path, v); ok {
				c.Template = string(text)
			}
		}},
		{"mock_parts", nil, func(path string, v *dialect.Tree) { c.Parts = r.readMockParts(path, v) }},
	}
}
