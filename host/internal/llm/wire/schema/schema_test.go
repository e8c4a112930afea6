package schema_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// TestFeatures says of each feature what becomes of it for each vendor.
func TestFeatures(t *testing.T) {
	property := func(s string) string { return `{"type":"object","properties":{"p":` + s + `}}` }
	for _, c := range []struct{ name, schema, to, want, lost string }{
		{"a format", property(`{"type":"string","format":"uri"}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"STRING"}}}`, "lost /inputSchema/properties/p/format"},
		{"null beside a type", property(`{"type":["string","null"]}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"STRING","nullable":true}}}`, ""},
		{"null in a choice", property(`{"anyOf":[{"type":"integer"},{"type":"null"}]}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"INTEGER","nullable":true}}}`, ""},
		{"several types", property(`{"type":["string","integer"],"minLength":1}`), "gemini", `{"type":"OBJECT","properties":{"p":{"anyOf":[{"type":"STRING","minLength":1},{"type":"INTEGER"}]}}}`, ""},
		{"exactly one", property(`{"oneOf":[{"type":"string"},{"type":"boolean"}]}`), "gemini", `{"type":"OBJECT","properties":{"p":{"anyOf":[{"type":"STRING"},{"type":"BOOLEAN"}]}}}`, "changed /inputSchema/properties/p"},
		{"const", property(`{"const":"x"}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"STRING","enum":["x"]}}}`, ""},
		{"an enum of numbers", property(`{"enum":[1,2]}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"INTEGER"}}}`, "lost /inputSchema/properties/p/enum"},
		{"an exclusive limit", property(`{"type":"integer","exclusiveMinimum":0}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"INTEGER","minimum":1}}}`, ""},
		{"free names", property(`{"type":"object","additionalProperties":{"type":"string"}}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"OBJECT"}}}`, "lost /inputSchema/properties/p/additionalProperties"},
		{"a definition", `{"type":"object","properties":{"p":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string","maxLength":3}}}`, "gemini", `{"type":"OBJECT","properties":{"p":{"type":"STRING","maxLength":3}}}`, ""},
		{"a recursion", `{"type":"object","properties":{"p":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"object","properties":{"next":{"$ref":"#/$defs/d"}}}}}`, "gemini", `{"type":"OBJECT","properties":{"p":{"type":"OBJECT","properties":{"next":{"type":"OBJECT"}}}}}`, "changed /inputSchema/$defs/d/properties/next"},
		{"all of several", property(`{"allOf":[{"type":"object","properties":{"a":{"type":"string"}}},{"required":["a"]}]}`), "gemini", `{"type":"OBJECT","properties":{"p":{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"required":["a"]}}}`, ""},

		{"optional", property(`{"type":"string","enum":["a"]}`), "openai", `{"type":"object","properties":{"p":{"type":["string","null"],"enum":["a",null]}},"required":["p"],"additionalProperties":false}`, ""},
		{"optional and composed", property(`{"type":"array","items":{"type":"string"}}`), "openai", `{"type":"object","properties":{"p":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}},"required":["p"],"additionalProperties":false}`, ""},
		{"a length", property(`{"type":"string","maxLength":3,"pattern":"^a"}`), "openai", `{"type":"object","properties":{"p":{"type":["string","null"],"pattern":"^a"}},"required":["p"],"additionalProperties":false}`, "lost /inputSchema/properties/p/maxLength"},
		{"a recursion", `{"type":"object","properties":{"p":{"$ref":"#/$defs/d"}},"required":["p"],"$defs":{"d":{"type":"object","properties":{"n":{"$ref":"#/$defs/d"}}}}}`, "openai",
			`{"type":"object","properties":{"p":{"$ref":"#/$defs/d"}},"required":["p"],"additionalProperties":false,"$defs":{"d":{"type":"object","properties":{"n":{"anyOf":[{"$ref":"#/$defs/d"},{"type":"null"}]}},"required":["n"],"additionalProperties":false}}}`, ""},
		{"free names", property(`{"type":"object","description":"headers"}`), "openai", `{"type":"object","properties":{"p":{"type":["string","null"],"description":"headers (as JSON text)"}},"required":["p"],"additionalProperties":false}`, "changed /inputSchema/properties/p"},
		{"too deep", strings.Repeat(`{"type":"object","properties":{"p":`, 12) + `{"type":"string"}` + strings.Repeat(`}}`, 12), "openai", ``, "refused /inputSchema"},
		{"optional", property(`{"type":"string"}`), "anthropic", `{"type":"object","properties":{"p":{"type":"string"}},"required":[],"additionalProperties":false}`, ""},
		{"limits", property(`{"type":"integer","minimum":1}`), "anthropic", `{"type":"object","properties":{"p":{"type":"integer"}},"required":[],"additionalProperties":false}`, "lost /inputSchema/properties/p/minimum"},
		{"a recursion", `{"type":"object","properties":{"p":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"object","properties":{"n":{"$ref":"#/$defs/d"}}}}}`, "anthropic", ``, "refused /inputSchema"},

		{"a choice at the top", `{"type":"object","oneOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"}},"required":["b"]}]}`, "plain",
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, "changed /inputSchema"},
		{"a reference at the top", `{"$ref":"#/$defs/a","$defs":{"a":{"type":"object","properties":{"x":{}}}}}`, "plain", `{"$defs":{"a":{"type":"object","properties":{"x":{}}}},"type":"object","properties":{"x":{}}}`, ""},
		{"older drafts", property(`{"type":"array","items":[{"type":"number","minimum":1,"exclusiveMinimum":true}]}`), "plain", `{"type":"object","properties":{"p":{"type":"array","prefixItems":[{"type":"number","exclusiveMinimum":1}],"items":{}}}}`, ""},
		{"nothing", ``, "plain", `{"type":"object","properties":{}}`, ""},
	} {
		t.Run(c.to+" "+c.name, func(t *testing.T) {
			var losses llm.Losses
			var got *tree.Value
			switch c.to {
			case "gemini":
				got = schema.Subset(json.RawMessage(c.schema), "/inputSchema", &losses)
			case "openai":
				got = schema.Strict(json.RawMessage(c.schema), schema.OpenAILimits(), &losses)
			case "anthropic":
				got = schema.Strict(json.RawMessage(c.schema), schema.AnthropicLimits(), &losses)
			default:
				got = schema.Plain(json.RawMessage(c.schema), "OpenAI", &losses)
			}
			if c.want == "" {
				require.Nil(t, got)
			} else {
				require.JSONEq(t, c.want, string(got.JSON()))
			}
			lost := ""
			for _, l := range losses {
				if l.Kind != llm.Equivalent {
					lost += string(l.Kind) + " " + l.Path
				}
			}
			require.Equal(t, c.lost, lost, "%v", losses)
		})
	}
}

func TestRestoreUndoesTheStrictForm(t *testing.T) {
	own := `{"type":"object","properties":{
		"path":{"type":"string"},"limit":{"type":["integer","null"]},"env":{"type":"object"},"any":{},"text":{"type":"string"},
		"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}}}},
		"one":{"anyOf":[{"type":"object","properties":{"k":{"const":"x"},"o":{"type":"string"}},"required":["k"]},{"type":"string"}]},
		"next":{"$ref":"#"}},"required":["text"]}`
	for given, want := range map[string]string{
		`{"path":null,"limit":null,"env":null,"any":null,"list":null,"next":null,"text":"t"}`: `{"limit":null,"text":"t"}`,
		`{"env":"{\"A\":\"b\"}","any":"[1,2]","text":"{\"A\":1}"}`:                            `{"env":{"A":"b"},"any":[1,2],"text":"{\"A\":1}"}`,
		`{"any":"plain words","env":"no json","text":null}`:                                   `{"any":"plain words","env":"no json","text":null}`,
		`{"list":[{"a":null},{"a":"x"}],"one":{"k":"x","o":null}}`:                            `{"list":[{},{"a":"x"}],"one":{"k":"x"}}`,
		`{"next":{"path":null,"next":{"path":null,"text":"u"}},"unknown":null}`:               `{"next":{"next":{"text":"u"}},"unknown":null}`,
		`not json`:   `not json`,
		`{"n": 1.0}`: `{"n": 1.0}`,
	} {
		require.Equal(t, want, string(schema.Restore(json.RawMessage(own), json.RawMessage(given))), given)
	}
}

// simple makes schemas of which the strict form loses nothing.
func simple(r *rand.Rand, depth int) *tree.Value {
	switch n := r.IntN(7); {
	case n == 0:
		return tree.Obj("type", tree.Str("string"))
	case n == 1:
		return tree.Obj("type", tree.Str("integer"), "minimum", tree.Int(0))
	case n == 2:
		return tree.Obj("enum", tree.Strs("a", "b"))
	case n == 3:
		return tree.Obj("type", tree.Strs("boolean", "null"))
	case n == 4 && depth > 0:
		return tree.Obj("type", tree.Str("array"), "items", simple(r, depth-1))
	case n == 5 && depth > 0:
		return tree.Obj("anyOf", tree.List(simple(r, 0), tree.Obj("type", tree.Str("number"))))
	}
	properties, required := tree.Obj(), tree.List()
	for _, name := range []string{"a", "b", "c"}[:1+r.IntN(3)] {
		properties.Set(name, simple(r, max(depth-1, 0)))
		if depth == 0 {
			properties.Set(name, tree.Obj("type", tree.Str("string")))
		}
		if r.IntN(2) == 0 {
			required.Items = append(required.Items, tree.Str(name))
		}
	}
	return tree.Obj("type", tree.Str("object"), "properties", properties, "required", required, "additionalProperties", tree.Boolean(false))
}

// instance makes a value that a schema of simple's, or its strict form, takes.
func instance(r *rand.Rand, s *tree.Value, all bool) *tree.Value {
	if list := s.Get("anyOf"); list != nil {
		return instance(r, list.Items[r.IntN(len(list.Items))], all)
	}
	if enum := s.Get("enum"); enum != nil {
		return enum.Items[r.IntN(len(enum.Items))].Clone()
	}
	name := s.Get("type").Text
	if names := s.Get("type").PeekItems(); len(names) > 0 {
		name = names[r.IntN(len(names))].Text
	}
	switch name {
	case "string":
		return tree.Str([]string{"", "x", "{}"}[r.IntN(3)])
	case "integer", "number":
		return tree.Int(r.IntN(5))
	case "boolean":
		return tree.Boolean(r.IntN(2) == 0)
	case "array":
		list := tree.List()
		for range r.IntN(3) {
			list.Items = append(list.Items, instance(r, s.Get("items"), all))
		}
		return list
	case "object":
		out := tree.Obj()
		for _, p := range s.Get("properties").PeekMembers() {
			must := slices.ContainsFunc(s.Get("required").PeekItems(), func(n *tree.Value) bool { return n.Text == p.Name })
			if must || all || r.IntN(2) == 0 {
				out.Set(p.Name, instance(r, p.Value, all))
			}
		}
		return out
	}
	return &tree.Value{}
}

func check(t *testing.T, s, v *tree.Value) error {
	t.Helper()
	load := func(v *tree.Value) any {
		out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(v.JSON())))
		require.NoError(t, err)
		return out
	}
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("mem:///s", load(s)))
	compiled, err := c.Compile("mem:///s")
	require.NoError(t, err, "%s", s.JSON())
	return compiled.Validate(load(v))
}

// TestWhatIsTakenStaysTaken holds that a written schema takes what the
// original takes, and that the original takes what the strict form took, once
// that is undone.
func TestWhatIsTakenStaysTaken(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		own := tree.Obj("type", tree.Str("object"), "properties", tree.Obj("x", simple(r, 3), "y", simple(r, 2)), "required", tree.Strs("y"))
		var losses llm.Losses
		held := schema.Strict(own.JSON(), schema.OpenAILimits(), &losses)
		require.NotNil(t, held, "%s %v", own.JSON(), losses)
		for _, loss := range losses {
			require.NotContains(t, []llm.LossKind{llm.Lost, llm.Changed}, loss.Kind, "%s %v", own.JSON(), losses)
		}
		subset := schema.FromSubset(schema.Subset(own.JSON(), "/inputSchema", &losses))
		for range 4 {
			v := instance(r, own, false)
			require.NoError(t, check(t, own, v))
			require.NoError(t, check(t, subset, v), "%s\n%s\n%s", own.JSON(), subset.JSON(), v.JSON())
			answer := instance(r, held, true)
			require.NoError(t, check(t, held, answer), "%s\n%s", held.JSON(), answer.JSON())
			restored := tree.Raw(schema.Restore(own.JSON(), answer.JSON()))
			require.NoError(t, check(t, own, restored), "seed %d\n%s\n%s\n%s", seed, own.JSON(), answer.JSON(), restored.JSON())
		}
	}
}
