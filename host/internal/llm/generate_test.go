package llm_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// gen makes what conversions are tried with.
type gen struct {
	*rand.Rand
	defs []string // of the schema being made
}

func newGen(seed uint64) *gen { return &gen{Rand: rand.New(rand.NewPCG(seed, 7))} }

func (g *gen) in(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *gen, of ...T) T { return of[g.IntN(len(of))] }

func (g *gen) word() string { return pick(g, "a", "path", "b_c", "d-e", "ü", "x y", "~/", "query") }

func (g *gen) text() string {
	return pick(g, "hello", "", "<b>&amp;", "two\nlines", "\u2028", "[tool error]\nx", "[tool result]\n[tool error]\n", `{"a":1}`, "ünï😀", "[image 1 of c]", "Error: no")
}

func (g *gen) literal() *tree.Value {
	return pick(g, tree.Str("x"), tree.Str(""), tree.Str("null"), tree.Int(3), tree.Float(2.5), tree.Boolean(true), &tree.Value{},
		tree.List(tree.Int(1)), tree.Obj("k", tree.Str("v")))
}

// schema makes any schema.
func (g *gen) schema(depth int) *tree.Value {
	if g.in(25) {
		return tree.Boolean(g.in(2))
	}
	if g.in(12) {
		return tree.Obj()
	}
	s := tree.Obj()
	if g.in(3) {
		s.Set("description", tree.Str(g.text()))
	}
	if len(g.defs) > 0 && g.in(6) {
		s.Set("$ref", tree.Str(pick(g, "#/$defs/"+pick(g, g.defs...), "#/$defs/"+pick(g, g.defs...), "#", "https://example.com/s.json", "#/$defs/none")))
		return s
	}
	if depth > 0 && g.in(6) {
		list := tree.List()
		for range 1 + g.IntN(3) {
			list.Items = append(list.Items, g.schema(depth-1))
		}
		s.Set(pick(g, "anyOf", "anyOf", "oneOf", "allOf"), list)
		if g.in(2) {
			return s
		}
	}
	switch g.IntN(9) {
	case 0, 1:
		g.object(s, depth)
	case 2:
		g.array(s, depth)
	case 3, 4:
		g.words(s, "string", "minLength", "maxLength", "pattern", "format")
	case 5, 6:
		g.words(s, pick(g, "integer", "number"), "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
	case 7:
		s.Set("type", tree.Str(pick(g, "boolean", "null")))
	case 8:
		list := tree.List()
		for _, name := range g.Perm(7)[:1+g.IntN(3)] {
			list.Items = append(list.Items, tree.Str([]string{"string", "integer", "number", "boolean", "null", "array", "object"}[name]))
		}
		s.Set("type", list)
	}
	if g.in(8) {
		list := tree.List()
		for range 1 + g.IntN(3) {
			list.Items = append(list.Items, g.literal())
		}
		s.Set("enum", list)
	}
	if g.in(12) {
		s.Set("const", g.literal())
	}
	if g.in(8) {
		s.Set(pick(g, "default", "title", "examples", "$comment", "not", "if", "x-odd", "deprecated", "nullable"), tree.Boolean(true))
	}
	return s
}

func (g *gen) words(s *tree.Value, typ string, words ...string) {
	if !g.in(8) {
		s.Set("type", tree.Str(typ))
	}
	if g.in(4) {
		s.Set("type", tree.Strs(pick(g, []string{typ, "null"}, []string{"null", typ})...))
	}
	for _, w := range words {
		if !g.in(4) {
			continue
		}
		switch w {
		case "pattern":
			s.Set(w, tree.Str(pick(g, "^a+$", "x", "(?i)y", `(a)\1`)))
		case "format":
			s.Set(w, tree.Str(pick(g, "date-time", "uri", "email", "int32", "odd")))
		case "multipleOf":
			s.Set(w, tree.Int(2))
		default:
			s.Set(w, tree.Int(g.IntN(5)))
		}
	}
}

func (g *gen) object(s *tree.Value, depth int) {
	if !g.in(6) {
		s.Set("type", tree.Str("object"))
	}
	properties, required := tree.Obj(), tree.List()
	for range g.IntN(4) {
		name := g.word()
		if depth > 0 && properties.Get(name) == nil {
			properties.Set(name, g.schema(depth-1))
			if g.in(2) {
				required.Items = append(required.Items, tree.Str(name))
			}
		}
	}
	if !g.in(5) {
		s.Set("properties", properties)
	}
	if g.in(6) {
		required.Items = append(required.Items, tree.Str("nowhere"))
	}
	if len(required.Items) > 0 || g.in(4) {
		s.Set("required", required)
	}
	if g.in(3) {
		s.Set("additionalProperties", pick(g, tree.Boolean(false), tree.Boolean(true), g.schema(0)))
	}
	if g.in(8) {
		s.Set(pick(g, "minProperties", "maxProperties"), tree.Int(g.IntN(4)))
	}
	if g.in(12) {
		s.Set("patternProperties", tree.Obj("^x", g.schema(0)))
	}
}

func (g *gen) array(s *tree.Value, depth int) {
	s.Set("type", tree.Str("array"))
	if depth > 0 && !g.in(5) {
		s.Set("items", g.schema(depth-1))
	}
	if depth > 0 && g.in(6) {
		s.Set("prefixItems", tree.List(g.schema(depth-1), g.schema(depth-1)))
	}
	if g.in(4) {
		s.Set(pick(g, "minItems", "maxItems", "uniqueItems"), tree.Int(g.IntN(3)))
		if s.Get("uniqueItems") != nil {
			s.Set("uniqueItems", tree.Boolean(true))
		}
	}
}

// arguments makes a schema of arguments.
func (g *gen) arguments() *tree.Value {
	g.defs = nil
	if g.in(3) {
		g.defs = []string{"one", "two"}
	}
	s := tree.Obj()
	g.object(s, 3)
	if !g.in(6) {
		s.Set("type", tree.Str("object"))
	}
	if g.in(8) {
		s.Set(pick(g, "anyOf", "oneOf", "allOf"), tree.List(g.branch(), g.branch()))
	}
	if g.in(8) {
		s.Set("$schema", tree.Str("https://json-schema.org/draft/2020-12/schema"))
	}
	if len(g.defs) > 0 {
		s.Set("$defs", tree.Obj("one", g.schema(2), "two", g.schema(2)))
	}
	return s
}

func (g *gen) branch() *tree.Value {
	s := tree.Obj()
	g.object(s, 1)
	return s
}

func (g *gen) tool() llm.Tool {
	t := llm.Tool{Name: g.toolName(), Input: g.arguments().JSON()}
	if !g.in(3) {
		t.Description = g.text()
	}
	if g.in(3) {
		t.Title = "T"
	}
	if g.in(3) {
		t.Annotations = json.RawMessage(`{"readOnlyHint":true}`)
	}
	if g.in(4) {
		t.Output = g.arguments().JSON()
	}
	if g.in(4) {
		t.ExtraMembers = []llm.Member{{Name: "_meta", Value: json.RawMessage(`{"a":12345678901234567890}`)}}
	}
	return t
}

func (g *gen) toolName() string {
	return pick(g, "ls", "fix__echo", "1st", "a.b", "a/b", "ü", strings.Repeat("long_", 20), "get weather")
}

// conversation makes messages in which every result answers a call.
func (g *gen) conversation() []llm.Message {
	var out []llm.Message
	if g.in(2) {
		out = append(out, llm.Message{Role: pick(g, llm.SystemRole, llm.DeveloperRole), Parts: []llm.Part{g.textPart(), g.textPart()}})
	}
	ids := 0
	for range 1 + g.IntN(4) {
		user := llm.Message{Role: llm.UserRole, Parts: []llm.Part{g.textPart()}}
		if g.in(3) {
			user.Parts = append(user.Parts, g.image(), g.textPart())
		}
		if g.in(6) {
			user.Name = "ada"
		}
		out = append(out, user)
		if g.in(8) {
			out = append(out, llm.Message{Role: llm.SystemRole, Parts: []llm.Part{g.textPart()}})
		}
		assistant := llm.Message{Role: llm.AssistantRole}
		var results []llm.Part
		for range g.IntN(5) {
			p := g.said(&ids)
			assistant.Parts = append(assistant.Parts, p)
			if p.ToolCall != nil {
				results = append(results, g.result(p.ToolCall))
			}
		}
		out = append(out, assistant)
		g.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		switch {
		case len(results) > 1 && g.in(3):
			out = append(out, llm.Message{Role: llm.ToolRole, Parts: results[:1]}, llm.Message{Role: llm.ToolRole, Parts: results[1:]})
		case len(results) > 0:
			out = append(out, llm.Message{Role: llm.ToolRole, Parts: results})
		}
	}
	return out
}

func (g *gen) textPart() llm.Part { return llm.Part{Type: llm.TextPart, Text: g.text()} }

func (g *gen) image() llm.Part {
	return llm.Part{Type: llm.ImagePart, Media: pick(g,
		&llm.Media{MIME: "image/png", Data: "iVBORw0KGgo="}, &llm.Media{Data: "/9j/4AAQ"},
		&llm.Media{URL: "https://example.com/a.png"}, &llm.Media{URL: "https://example.com/a", Detail: "low"},
		&llm.Media{URL: "https://example.com/b.gif", MIME: "image/gif"}, &llm.Media{MIME: "image/webp", Data: "UklGRg==", URL: "https://example.com/c"})}
}

func (g *gen) said(ids *int) llm.Part {
	signature := &llm.Signature{Vendor: pick(g, llm.Anthropic, llm.Gemini), Value: "c2ln"}
	switch g.IntN(8) {
	case 0:
		return llm.Part{Type: llm.ThinkingPart, Text: g.text(), Signature: pick(g, nil, signature, signature)}
	case 1:
		return llm.Part{Type: llm.RedactedPart, Signature: &llm.Signature{Vendor: llm.Anthropic, Value: "b3BhcXVl"}}
	case 2:
		return llm.Part{Type: llm.RefusalPart, Text: "no"}
	case 3:
		return pick(g, g.image(), llm.Part{Type: llm.OpaquePart, Vendor: llm.Anthropic, Raw: json.RawMessage(`{"type":"server_tool_use","id":"s1","name":"web_search","input":{},"caller":{"type":"direct"}}`)},
			llm.Part{Type: llm.OpaquePart, Vendor: llm.Gemini, Raw: json.RawMessage(`{"executableCode":{"code":"1","language":"PYTHON"}}`)},
			llm.Part{Type: llm.OpaquePart, Vendor: llm.OpenAI, Raw: json.RawMessage(`{"id":"c","type":"custom","custom":{"name":"x","input":"y"}}`)})
	case 4, 5:
		p := g.textPart()
		if g.in(4) {
			p.Signature = signature
		}
		return p
	}
	*ids++
	p := llm.Part{Type: llm.CallPart, ToolCall: &llm.ToolCall{ID: fmt.Sprintf("call_%d", *ids), Name: g.toolName(), Args: json.RawMessage(`{"a":[1.0,"\u003c"],"n":12345678901234567890}`)}}
	switch {
	case g.in(8):
		p.ToolCall.ID = fmt.Sprintf("functions.ls:%d/%s", *ids, strings.Repeat("x", g.IntN(60)))
	case g.in(8):
		p.ToolCall.ID = fmt.Sprintf("gemini_call_%d_0", *ids+50)
	}
	switch {
	case g.in(8):
		p.ToolCall.Args, p.ToolCall.Malformed = nil, `{"a":`
	case g.in(8):
		p.ToolCall.Args = nil
	}
	if g.in(3) {
		p.Signature = signature
	}
	return p
}

func (g *gen) result(c *llm.ToolCall) llm.Part {
	r := &llm.ToolResult{ID: c.ID, Name: c.Name, IsError: g.in(3)}
	for range g.IntN(4) {
		r.Content = append(r.Content, pick(g, g.textPart(), g.textPart(), g.image(),
			llm.Part{Type: llm.OpaquePart, Vendor: llm.MCP, Raw: json.RawMessage(`{"type":"resource","resource":{"uri":"file:///a","text":"t"}}`)},
			llm.Part{Type: llm.OpaquePart, Vendor: llm.MCP, Raw: json.RawMessage(`{"type":"audio","data":"AAAA","mimeType":"audio/wav"}`)}))
	}
	if g.in(3) {
		r.Structured = json.RawMessage(`{"code":"X"}`)
	}
	if g.in(6) {
		r.ExtraMembers = []llm.Member{{Name: "_meta", Value: json.RawMessage(`{"k":1}`)}}
	}
	if g.in(6) {
		r.Name = ""
	}
	return llm.Part{Type: llm.ResultPart, ToolResult: r}
}

func (g *gen) request() *llm.Request {
	r := &llm.Request{Model: "m", Messages: g.conversation(), MaxTokens: g.IntN(2) * 100, TopK: g.IntN(2) * 5, Stream: g.in(2), StreamUsage: g.in(3)}
	if g.in(2) {
		r.Choice = &llm.Choice{Mode: pick(g, llm.ChoiceAuto, llm.ChoiceRequired, llm.ChoiceNone)}
		for range g.IntN(3) {
			r.Choice.ToolNames = append(r.Choice.ToolNames, pick(g, "ls", "fix__echo"))
		}
	}
	if g.in(2) {
		yes := g.in(2)
		r.Parallel = &yes
	}
	if g.in(2) {
		t := pick(g, 0, 0.7, 1.5)
		r.Temperature, r.TopP = &t, &t
	}
	if g.in(3) {
		r.StopSequences = []string{"END", "\n"}
	}
	switch { // of what was drawn, so that what is drawn next is the same
	case r.TopK > 0 && r.MaxTokens > 0:
		r.Format = json.RawMessage(`{"type":"json_object"}`)
	case r.TopK > 0:
		r.Format = json.RawMessage(`{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}`)
	}
	return r
}

func (g *gen) response() *llm.Response {
	ids := 0
	r := &llm.Response{ID: "r1", Model: "m", Created: int64(g.IntN(2) * 1700000000), StopReason: pick(g, llm.StopEnd, llm.StopCalls, llm.StopLength,
		llm.StopContext, llm.StopSequence, llm.StopRefusal, llm.StopPause, llm.StopFault, llm.StopOther)}
	for range g.IntN(5) {
		r.Parts = append(r.Parts, g.said(&ids))
	}
	if r.StopReason == llm.StopSequence {
		r.MatchedStop = "END"
	}
	if !g.in(4) {
		r.Usage = &llm.Usage{Input: 100, CacheRead: g.IntN(20), CacheWrite: g.IntN(2) * 10, Output: 50, Reasoning: g.IntN(40)}
	}
	return r
}
