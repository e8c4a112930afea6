package llm_test

import (
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/anthropic"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/gemini"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/mcp"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/openai"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// cases is how many of everything are made; CONVERT_CASES says otherwise.
func cases(n int) uint64 {
	if more, err := strconv.Atoi(os.Getenv("CONVERT_CASES")); err == nil {
		n = more
	}
	return uint64(n)
}

// dialect is a vendor's conversion, either way.
type dialect struct {
	name     string
	tools    func([]llm.Tool, *llm.NameMap) (*tree.Value, llm.Losses)
	untools  func(json.RawMessage, *llm.NameMap) ([]llm.Tool, llm.Losses, error)
	request  func(*llm.Request) (*tree.Value, llm.Losses)
	unask    func(json.RawMessage) (*llm.Request, llm.Losses, error)
	response func(*llm.Response) (*tree.Value, llm.Losses)
	answer   func(json.RawMessage) (*llm.Response, llm.Losses, error)
	rule     llm.NameRule
}

func dialects() []dialect {
	ofOpenAI := func(name string, o openai.Options) dialect {
		named := func(n *llm.NameMap) openai.Options { o := o; o.Names = n; return o }
		return dialect{
			name: name, rule: openai.NameRule(),
			tools: func(t []llm.Tool, n *llm.NameMap) (*tree.Value, llm.Losses) {
				return openai.EncodeTools(t, named(n))
			},
			untools: func(d json.RawMessage, n *llm.NameMap) ([]llm.Tool, llm.Losses, error) {
				return openai.DecodeTools(d, named(n))
			},
			request: func(r *llm.Request) (*tree.Value, llm.Losses) {
				return openai.EncodeRequest(r, named(names(openai.NameRule())))
			},
			unask: func(d json.RawMessage) (*llm.Request, llm.Losses, error) {
				return openai.DecodeRequest(d, named(names(openai.NameRule())))
			},
			response: func(r *llm.Response) (*tree.Value, llm.Losses) {
				return openai.EncodeResponse(r, named(names(openai.NameRule())))
			},
			answer: func(d json.RawMessage) (*llm.Response, llm.Losses, error) {
				return openai.DecodeResponse(d, named(names(openai.NameRule())))
			},
		}
	}
	ofAnthropic := func(name string, o anthropic.Options) dialect {
		named := func(n *llm.NameMap) anthropic.Options { o := o; o.Names = n; return o }
		return dialect{
			name: name, rule: anthropic.NameRule(),
			tools: func(t []llm.Tool, n *llm.NameMap) (*tree.Value, llm.Losses) {
				return anthropic.EncodeTools(t, named(n))
			},
			untools: func(d json.RawMessage, n *llm.NameMap) ([]llm.Tool, llm.Losses, error) {
				return anthropic.DecodeTools(d, named(n))
			},
			request: func(r *llm.Request) (*tree.Value, llm.Losses) {
				return anthropic.EncodeRequest(r, named(names(anthropic.NameRule())))
			},
			unask: func(d json.RawMessage) (*llm.Request, llm.Losses, error) {
				return anthropic.DecodeRequest(d, named(names(anthropic.NameRule())))
			},
			response: func(r *llm.Response) (*tree.Value, llm.Losses) {
				return anthropic.EncodeResponse(r, named(names(anthropic.NameRule())))
			},
			answer: func(d json.RawMessage) (*llm.Response, llm.Losses, error) {
				return anthropic.DecodeResponse(d, named(names(anthropic.NameRule())))
			},
		}
	}
	ofGemini := func(name string, o gemini.Options) dialect {
		named := func(n *llm.NameMap) gemini.Options { o := o; o.Names = n; return o }
		return dialect{
			name: name, rule: gemini.NameRule(),
			tools: func(t []llm.Tool, n *llm.NameMap) (*tree.Value, llm.Losses) {
				return gemini.EncodeTools(t, named(n))
			},
			untools: func(d json.RawMessage, n *llm.NameMap) ([]llm.Tool, llm.Losses, error) {
				return gemini.DecodeTools(d, named(n))
			},
			request: func(r *llm.Request) (*tree.Value, llm.Losses) {
				return gemini.EncodeRequest(r, named(names(gemini.NameRule())))
			},
			unask: func(d json.RawMessage) (*llm.Request, llm.Losses, error) {
				return gemini.DecodeRequest(d, named(names(gemini.NameRule())))
			},
			response: func(r *llm.Response) (*tree.Value, llm.Losses) {
				return gemini.EncodeResponse(r, named(names(gemini.NameRule())))
			},
			answer: func(d json.RawMessage) (*llm.Response, llm.Losses, error) {
				return gemini.DecodeResponse(d, 0, named(names(gemini.NameRule())))
			},
		}
	}
	return []dialect{
		ofOpenAI("openai", openai.Options{}), ofOpenAI("openai strict", openai.Options{Strict: true}), ofOpenAI("openai compatible", openai.Options{Extensions: true, OldMaxTokens: true}),
		ofAnthropic("anthropic", anthropic.Options{}), ofAnthropic("anthropic strict", anthropic.Options{Strict: true}),
		ofGemini("gemini", gemini.Options{}), ofGemini("gemini without ids", gemini.Options{NoIDs: true, SkipSignatures: true}),
	}
}

// names are those of all tools that are made.
func names(rule llm.NameRule) *llm.NameMap {
	var tools []llm.Tool
	for _, name := range []string{"ls", "fix__echo", "1st", "a.b", "a/b", "ü", strings.Repeat("long_", 20), "get weather", "unknown"} {
		tools = append(tools, llm.Tool{Name: name})
	}
	return llm.NewNameMap(rule, tools)
}

// gone stands where an item was lost, until all losses are applied.
func gone() *tree.Value { return tree.Str("\x00gone") }

// apply makes of a value what its report says became of it.
func apply(t *testing.T, v *tree.Value, losses llm.Losses) *tree.Value {
	t.Helper()
	v = v.Clone()
	for _, loss := range losses {
		if loss.Kind == llm.Refused {
			continue
		}
		if loss.Path == "" {
			t.Fatalf("a loss of everything: %v", loss)
		}
		cut := strings.LastIndexByte(loss.Path, '/')
		parent, key := v.At(loss.Path[:cut]), tree.Unescape(loss.Path[cut+1:])
		switch {
		case parent.Is(tree.Object) && loss.Replacement == nil:
			parent.Delete(key)
		case parent.Is(tree.Object):
			parent.Set(key, tree.Raw(loss.Replacement))
		case parent.Is(tree.Array):
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(parent.Items) {
				continue
			}
			parent.Items[i] = tree.Raw(loss.Replacement)
			if loss.Replacement == nil {
				parent.Items[i] = gone()
			}
		}
	}
	prune(v)
	return v
}

func prune(v *tree.Value) {
	v.Items = slices.DeleteFunc(v.Items, func(i *tree.Value) bool { return i.Is(tree.String) && i.Text == gone().Text })
	for _, item := range v.Items {
		prune(item)
	}
	for _, m := range v.Members {
		prune(m.Value)
	}
}

// sorted puts the lists in order whose order says nothing.
func sorted(v *tree.Value) *tree.Value {
	for i, m := range v.Members {
		if (m.Name == "type" || m.Name == "required") && m.Value.Is(tree.Array) {
			slices.SortFunc(m.Value.Items, func(a, b *tree.Value) int { return strings.Compare(a.Text, b.Text) })
			if m.Name == "type" && len(m.Value.Items) == 1 {
				v.Members[i].Value = m.Value.Items[0]
			}
		}
		sorted(m.Value)
	}
	for _, item := range v.Items {
		sorted(item)
	}
	return v
}

func TestDefinitionsComeBackAsReported(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.name, func(t *testing.T) {
			for seed := range cases(150) {
				tool := newGen(seed).tool()
				translation := llm.NewNameMap(d.rule, []llm.Tool{tool})
				made, losses := d.tools([]llm.Tool{tool}, translation)
				back, unread, err := d.untools(made.JSON(), translation)
				require.NoError(t, err)
				require.Empty(t, unread, "seed %d: %s", seed, made.JSON())
				require.Len(t, back, 1)
				want := sorted(apply(t, tool.Definition(), losses))
				got := sorted(back[0].Definition())
				require.True(t, schema.Equal(want, got), "seed %d\nwas  %s\nsent %s\nwant %s\ngot  %s\n%v", seed, tool.Definition().JSON(), made.JSON(), want.JSON(), got.JSON(), losses)
			}
		})
	}
}

// canonical is what a value says it is, read anew.
func canonical[T any](t *testing.T, v *tree.Value) T {
	t.Helper()
	var out T
	require.NoError(t, json.Unmarshal(v.JSON(), &out), "%s", v.JSON())
	return out
}

func asTree(t *testing.T, v any) *tree.Value {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return tree.Raw(raw)
}

func TestConversationsComeBackAsReported(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.name, func(t *testing.T) {
			for seed := range cases(150) {
				request := newGen(seed).request()
				made, losses := d.request(request)
				back, unread, err := d.unask(made.JSON())
				require.NoError(t, err)
				require.Empty(t, unread, "seed %d: %s", seed, made.JSON())
				permutes(t, request, losses)
				want := canonical[llm.Request](t, apply(t, asTree(t, request), losses))
				want.Messages, back.Messages = llm.Normalize(want.Messages), llm.Normalize(back.Messages)
				wanted, got := asTree(t, want), asTree(t, back)
				require.True(t, schema.Equal(wanted, got), "seed %d\nwas  %s\nsent %s\nwant %s\ngot  %s\n%v", seed, asTree(t, request).JSON(), made.JSON(), wanted.JSON(), got.JSON(), losses)
			}
		})
	}
}

// permutes holds that what is said to be in another order is the same in
// another order.
func permutes(t *testing.T, request *llm.Request, losses llm.Losses) {
	t.Helper()
	for _, loss := range losses {
		if loss.Path != "/messages" {
			continue
		}
		var before, after []string
		for _, m := range request.Messages {
			for _, p := range m.Parts {
				before = append(before, string(m.Role)+string(asTree(t, p).JSON()))
			}
		}
		for _, m := range canonical[[]llm.Message](t, tree.Raw(loss.Replacement)) {
			for _, p := range m.Parts {
				after = append(after, string(m.Role)+string(asTree(t, p).JSON()))
			}
		}
		require.ElementsMatch(t, before, after)
	}
}

func TestResponsesComeBackAsReported(t *testing.T) {
	for _, d := range dialects() {
		t.Run(d.name, func(t *testing.T) {
			for seed := range cases(150) {
				response := newGen(seed).response()
				made, losses := d.response(response)
				back, unread, err := d.answer(made.JSON())
				require.NoError(t, err)
				require.Empty(t, unread, "seed %d: %s", seed, made.JSON())
				want := canonical[llm.Response](t, apply(t, asTree(t, response), losses))
				back.VendorStop, back.Vendor = "", "" // whose words they are
				for _, r := range []*llm.Response{&want, back} {
					if messages := llm.Normalize([]llm.Message{r.Message()}); len(messages) > 0 {
						r.Parts = messages[0].Parts
					} else {
						r.Parts = nil
					}
				}
				wanted, got := asTree(t, want), asTree(t, back)
				require.True(t, schema.Equal(wanted, got), "seed %d\nwas  %s\nsent %s\nwant %s\ngot  %s\n%v", seed, asTree(t, response).JSON(), made.JSON(), wanted.JSON(), got.JSON(), losses)
			}
		})
	}
}

func TestCallsAndResultsOfMCPComeBackAsReported(t *testing.T) {
	for seed := range cases(150) {
		g, ids := newGen(seed), 0
		p := g.said(&ids)
		for p.ToolCall == nil {
			p = g.said(&ids)
		}
		call, result := p.ToolCall, g.result(p.ToolCall).ToolResult
		made, losses := mcp.EncodeCall(call)
		called, unread, err := mcp.DecodeCall(made.JSON(), call.ID)
		require.NoError(t, err)
		require.Empty(t, unread, "seed %d: %s", seed, made.JSON())
		want, got := apply(t, asTree(t, call), losses), asTree(t, called)
		require.True(t, schema.Equal(want, got), "seed %d\nsent %s\nwant %s\ngot  %s\n%v", seed, made.JSON(), want.JSON(), got.JSON(), losses)

		made, losses = mcp.EncodeResult(result)
		answered, unread, err := mcp.DecodeResult(made.JSON(), result.ID, result.Name)
		require.NoError(t, err)
		require.Empty(t, unread, "seed %d: %s", seed, made.JSON())
		want, got = apply(t, asTree(t, result), losses), asTree(t, answered)
		require.True(t, schema.Equal(want, got), "seed %d\nsent %s\nwant %s\ngot  %s\n%v", seed, made.JSON(), want.JSON(), got.JSON(), losses)
	}
}

func TestAReportIsBounded(t *testing.T) {
	body := `{"messages":[]`
	for i := range 3000 {
		body += `,"m` + strconv.Itoa(i) + `":0`
	}
	_, losses, err := openai.DecodeRequest(json.RawMessage(body+`}`), openai.Options{})
	require.NoError(t, err)
	require.Len(t, losses, 1000)
	require.Contains(t, losses[999].Why, "further changes")
}
