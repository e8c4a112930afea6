package mcpkit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

func nothing[A any](context.Context, A) (*mcpkit.Result, error) {
	return &mcpkit.Result{Text: "done"}, nil
}

func makeOne[A any](t testing.TB) *mcpkit.Tool {
	t.Helper()
	tool, err := mcpkit.NewTool(mcpkit.Def{Name: "t"}, nothing[A])
	require.NoError(t, err)
	return tool
}

// compile compiles a schema with an independent library.
func compile(t testing.TB, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	require.NoError(t, err, "%s", raw)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, c.AddResource("mem:///schema.json", doc))
	s, err := c.Compile("mem:///schema.json")
	require.NoError(t, err, "%s", raw)
	return s
}

func requireValid(t testing.TB, schema, value json.RawMessage) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	require.NoError(t, err, "%s", value)
	require.NoError(t, compile(t, schema).Validate(doc), "%s", value)
}

type (
	edit struct {
		Old string `json:"old_string" jsonschema:"text to find"`
		All bool   `json:"replace_all,omitempty"`
	}
	tree struct {
		Name string  `json:"name"`
		Kids []*tree `json:"kids,omitempty"`
	}
	page struct {
		Limit  int `json:"limit,omitempty" default:"100"`
		Offset int `json:"offset,omitempty"`
	}
	Shadowed struct {
		Path  string `json:"path" jsonschema:"hidden by the outer one"`
		Inner string `json:"inner,omitempty"`
	}
	pair[T any] struct {
		Next *pair[T] `json:"next,omitempty"`
		Val  T        `json:"val"`
	}
)

func TestSchemaOfEachFeature(t *testing.T) {
	const str = `{"type":"string"}`
	for _, tc := range []struct {
		name string
		tool *mcpkit.Tool
		want string
	}{
		{"no arguments", makeOne[struct{}](t), `{"type":"object","properties":{}}`},
		{"descriptions in three spellings, required is no omitempty", makeOne[struct {
			A string `json:"a" jsonschema:"the a, with commas, and \"quotes\""`
			B string `json:"b,omitempty" desc:"the b"`
			C string `json:"c,omitzero" description:"the c < d"`
			D string
		}](t), `{"type":"object","properties":{"a":{"type":"string","description":"the a, with commas, and \"quotes\""},"b":{"type":"string","description":"the b"},"c":{"type":"string","description":"the c < d"},"D":{"type":"string"}},"required":["a","D"]}`},
		{"pointers are plain and optional", makeOne[struct {
			N *int     `json:"n"`
			S **string `json:"s,omitempty" jsonschema:"s"`
			E *edit    `json:"e"`
		}](t), `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string","description":"s"},"e":{"type":"object","properties":{"old_string":{"type":"string","description":"text to find"},"replace_all":{"type":"boolean"}},"required":["old_string"]}}}`},
		{"enum, default, min, max", makeOne[struct {
			Mode  string        `json:"mode,omitempty" enum:"content, count" default:"content"`
			N     int           `json:"n,omitempty" default:"2" min:"1" max:"20"`
			F     float64       `json:"f,omitempty" min:"-0.5" default:"1.5"`
			Level int           `json:"level,omitempty" enum:"1,2"`
			Name  string        `json:"name,omitempty" min:"1" max:"8"`
			List  []string      `json:"list,omitempty" enum:"a,b" default:"a,b" max:"3"`
			Yes   bool          `json:"yes,omitempty" default:"true"`
			U     uint8         `json:"u,omitempty"`
			Wait  time.Duration `json:"wait,omitempty" default:"30s" max:"10m"`
		}](t), `{"type":"object","properties":{"mode":{"type":"string","enum":["content","count"],"default":"content"},"n":{"type":"integer","default":2,"maximum":20},"f":{"type":"number","default":1.5,"minimum":-0.5},"level":{"type":"integer","enum":[1,2]},"name":{"type":"string","maxLength":8},"list":{"type":"array","default":["a","b"],"maxItems":3,"items":{"type":"string","enum":["a","b"]}},"yes":{"type":"boolean","default":true},"u":{"type":"integer"},"wait":{"type":"string","description":"a duration like \"30s\" or \"1m30s\", at most 10m","default":"30s"}}}`},
		{"lists, maps, nesting", makeOne[struct {
			Edits []edit            `json:"edits,omitempty" jsonschema:"all or none"`
			Env   map[string]string `json:"env,omitempty"`
			Open  map[string]any    `json:"open,omitempty"`
			Two   [2]int            `json:"two,omitempty"`
			Deep  [][]string        `json:"deep,omitempty"`
		}](t), `{"type":"object","properties":{"edits":{"type":"array","description":"all or none","items":{"type":"object","properties":{"old_string":{"type":"string","description":"text to find"},"replace_all":{"type":"boolean"}},"required":["old_string"]}},"env":{"type":"object","properties":{},"additionalProperties":` + str + `},"open":{"type":"object","properties":{}},"two":{"type":"array","minItems":2,"maxItems":2,"items":{"type":"integer"}},"deep":{"type":"array","items":{"type":"array","items":` + str + `}}}}`},
		{"special types", makeOne[struct {
			B []byte          `json:"b,omitempty"`
			X any             `json:"x,omitempty" jsonschema:"whatever"`
			R json.RawMessage `json:"r,omitempty"`
			T time.Time       `json:"t,omitzero"`
			A netip.Addr      `json:"a,omitzero"`
			N json.Number     `json:"n,omitempty"`
		}](t), `{"type":"object","properties":{"b":{"type":"string","contentEncoding":"base64"},"x":{"description":"whatever"},"r":{},"t":{"type":"string","format":"date-time"},"a":{"type":"string"},"n":{"type":"number"}}}`},
		{"embedded structs in their place, the outer name wins", makeOne[struct {
			Shadowed
			Path string `json:"path"`
			page
			*edit `json:"e"`
			_     int
			Skip  int `json:"-"`
		}](t), `{"type":"object","properties":{"inner":{"type":"string"},"path":{"type":"string"},"limit":{"type":"integer","default":100},"offset":{"type":"integer"}},"required":["path"]}`},
		{"recursive types", makeOne[struct {
			Tree tree       `json:"tree" jsonschema:"the tree"`
			More []tree     `json:"more,omitempty"`
			Pair *pair[int] `json:"pair,omitempty"`
		}](t), `{"type":"object","properties":{"tree":{"$ref":"#/$defs/tree","description":"the tree"},"more":{"type":"array","items":{"$ref":"#/$defs/tree"}},"pair":{"$ref":"#/$defs/pair_int"}},"required":["tree"],"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#/$defs/tree"}}},"required":["name"]},"pair_int":{"type":"object","properties":{"next":{"$ref":"#/$defs/pair_int"},"val":{"type":"integer"}},"required":["val"]}}}`},
		{"recursive root", makeOne[tree](t), `{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}`},
		{"a map as the root", makeOne[map[string]any](t), `{"type":"object","properties":{}}`},
		{"aliases are not advertised", makeOne[struct {
			Path string `json:"path" alias:"file_path, file"`
		}](t), `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			schema, lost := tc.tool.Schema(false)
			require.Equal(t, tc.want, string(schema))
			require.Empty(t, lost)
			compile(t, schema)
			for _, refused := range []string{`"type":[`, `"anyOf"`, `null`, `"$schema"`, `\u003c`} {
				require.NotContains(t, string(schema), refused, "strict clients refuse it")
			}
			strict, _ := tc.tool.Schema(true)
			compile(t, strict)
		})
	}
}

// Defect 8: faulty tags give an error, not a line on stderr and an empty
// schema.
func TestFaultsAreErrorsAtConstruction(t *testing.T) {
	fail := func(_ *mcpkit.Tool, err error) string {
		require.Error(t, err)
		return err.Error()
	}
	d := mcpkit.Def{Name: "t"}
	type up struct {
		Path string `json:"path"`
	}
	type loop *loop
	for want, got := range map[string]string{
		"Done: a chan cannot be sent as JSON": fail(mcpkit.NewTool(d, nothing[struct{ Done chan int }])),
		"F: a func cannot be sent":            fail(mcpkit.NewTool(d, nothing[struct{ F func() }])),
		"C: a complex128":                     fail(mcpkit.NewTool(d, nothing[struct{ C complex128 }])),
		"an interface with methods":           fail(mcpkit.NewTool(d, nothing[struct{ E error }])),
		"a map needs plain string keys":       fail(mcpkit.NewTool(d, nothing[struct{ M map[int]string }])),
		"L: a pointer to itself":              fail(mcpkit.NewTool(d, nothing[struct{ L loop }])),
		"another library's syntax": fail(mcpkit.NewTool(d, nothing[struct {
			A string `json:"a" jsonschema:"required,description=the a"`
		}])),
		"is spelled json": fail(mcpkit.NewTool(d, nothing[struct {
			A string `Json:"a"`
		}])),
		"two different descriptions": fail(mcpkit.NewTool(d, nothing[struct {
			A string `desc:"a" description:"b"`
		}])),
		"desc is empty": fail(mcpkit.NewTool(d, nothing[struct {
			A string `desc:""`
		}])),
		`json option "string" is not supported`: fail(mcpkit.NewTool(d, nothing[struct {
			A int `json:"a,string"`
		}])),
		"differ only in case": fail(mcpkit.NewTool(d, nothing[struct {
			A string `json:"path"`
			B string `json:"Path"`
		}])),
		`the alias "b" of a is already a name of b`: fail(mcpkit.NewTool(d, nothing[struct {
			A string `json:"a" alias:"b"`
			B string `json:"b"`
		}])),
		`the alias "x" of b is already a name of a`: fail(mcpkit.NewTool(d, nothing[struct {
			A bool `json:"a,omitempty" alias:"x"`
			B any  `json:"b,omitempty" alias:"x"`
		}])),
		"clients refuse the argument name": fail(mcpkit.NewTool(d, nothing[struct {
			A string `json:"a b"`
		}])),
		"not a valid integer": fail(mcpkit.NewTool(d, nothing[struct {
			A int `json:"a,omitempty" default:"ten"`
		}])),
		"must be from 1 to 20, got 30": fail(mcpkit.NewTool(d, nothing[struct {
			A int `json:"a,omitempty" default:"30" min:"1" max:"20"`
		}])),
		`must be one of "x", "y"`: fail(mcpkit.NewTool(d, nothing[struct {
			A string `json:"a,omitempty" default:"z" enum:"x,y"`
		}])),
		"empty or repeated value": fail(mcpkit.NewTool(d, nothing[struct {
			A string `json:"a" enum:"x,,y"`
		}])),
		"enum is for strings and numbers": fail(mcpkit.NewTool(d, nothing[struct {
			A bool `json:"a" enum:"true"`
		}])),
		"min 5 is above max 1": fail(mcpkit.NewTool(d, nothing[struct {
			A int `json:"a" min:"5" max:"1"`
		}])),
		"boolean has no bounds": fail(mcpkit.NewTool(d, nothing[struct {
			A bool `json:"a" min:"5"`
		}])),
		"unexported struct cannot be filled in": fail(mcpkit.NewTool(d, nothing[struct{ *up }])),
		"arguments must be a struct or a map":   fail(mcpkit.NewTool(d, nothing[string])),
		"clients refuse the name":               fail(mcpkit.NewTool(mcpkit.Def{Name: "a.b"}, nothing[up])),
		"is given twice":                        fail(mcpkit.NewTool(mcpkit.Def{Name: "a", Aliases: []string{"a"}}, nothing[up])),
		"both read-only and destructive":        fail(mcpkit.NewTool(mcpkit.Def{Name: "a", Hints: mcpkit.Hints{ReadOnly: true, Destructive: true}}, nothing[up])),
		"no function":                           fail(mcpkit.NewTool[up](d, nil)),
		"output: code is the error's code": fail(mcpkit.NewTool(mcpkit.Def{Name: "a", Output: struct {
			Code int `json:"code"`
		}{}}, nothing[up])),
		"output must be a struct or a map": fail(mcpkit.NewTool(mcpkit.Def{Name: "a", Output: []int{}}, nothing[up])),
	} {
		require.Contains(t, got, want)
	}
	all := fail(mcpkit.NewTool(mcpkit.Def{Name: "no good"}, nothing[struct {
		A chan int
		B func()
	}]))
	require.Equal(t, 2, strings.Count(all, "\n"), "all faults at once: %s", all)
}

func TestStrictVariantSaysWhatIsLost(t *testing.T) {
	schema, lost := makeOne[struct {
		Path string            `json:"path" jsonschema:"where"`
		N    int               `json:"n,omitempty" default:"2" min:"1"`
		Mode string            `json:"mode,omitempty" enum:"a,b"`
		Name string            `json:"name" max:"9"`
		Env  map[string]string `json:"env,omitempty"`
		X    any               `json:"x"`
		Ed   []edit            `json:"ed,omitempty"`
		Tree *tree             `json:"tree,omitempty" jsonschema:"lost"`
	}](t).Schema(true)
	require.Equal(t, `{"type":"object","properties":{"path":{"type":"string","description":"where"},"n":{"type":["integer","null"]},"mode":{"type":["string","null"],"enum":["a","b",null]},"name":{"type":"string"},"env":{"type":["string","null"],"description":"(a JSON object, as text)"},"x":{"type":"string"},"ed":{"anyOf":[{"type":"array","items":{"type":"object","properties":{"old_string":{"type":"string","description":"text to find"},"replace_all":{"type":["boolean","null"]}},"required":["old_string","replace_all"],"additionalProperties":false}},{"type":"null"}]},"tree":{"anyOf":[{"$ref":"#/$defs/tree"},{"type":"null"}]}},"required":["path","n","mode","name","env","x","ed","tree"],"additionalProperties":false,"$defs":{"tree":{"type":"object","properties":{"name":{"type":"string"},"kids":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/tree"}},{"type":"null"}]}},"required":["name","kids"],"additionalProperties":false}}}`, string(schema))
	require.Equal(t, []string{
		"/n: the default 2",
		"/name: the bounds of its length",
		"/env: an object with free names became a string that holds it as JSON",
		"/x: a value of any type became a string",
		"/tree: the description, which cannot be combined with a reference",
	}, lost)
	schema, lost = makeOne[map[string]int](t).Schema(true)
	require.Equal(t, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`, string(schema))
	require.Len(t, lost, 1)
}
