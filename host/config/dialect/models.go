package dialect

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/provider/registry"
)

// modelsFields are the members of models:.
func modelsFields(m *registry.Config) []field {
	return []field{
		{"default", nil, "The model that is used unless another is asked for: NAME, PROVIDER/NAME or PROVIDER; the first if not given, or what is found.", typed("string"),
			func(r *reader, n *node) { m.Default = r.text(n) }},
		{"providers", nil, "Where models are, by name.", map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": `^[^/\s]+$`}, "additionalProperties": objectOf(providerFields(&registry.Provider{}))},
			func(r *reader, n *node) {
				r.each(n, func(name string, value *node) { m.Providers = append(m.Providers, r.provider(name, value)) })
			}},
	}
}

func providerFields(p *registry.Provider) []field {
	text := func(name string, also []string, doc string, into *string) field {
		return field{name, also, doc, typed("string"), func(r *reader, n *node) { *into = r.text(n) }}
	}
	return []field{
		{"kind", []string{"type", "vendor"}, "How it is spoken to: openai, or any that is compatible (the default), anthropic, gemini, scripted, command.", oneOf(registry.Kinds()...),
			func(r *reader, n *node) { p.Kind = registry.Kind(r.choice(n, registry.Kinds()...)) }},
		text("base_url", []string{"url", "endpoint", "api_base"}, "Its address, up to what every request's begins with, such as http://127.0.0.1:11434/v1; the vendor's own if not given.", &p.BaseURL),
		text("api_key_env", []string{"auth_token_env", "key_env"}, "The name of the environment variable with the key; the vendor's own (OPENAI_API_KEY …) at the vendor's own address.", &p.KeyEnv),
		{"headers", []string{"extra_headers"}, "HTTP headers of every request. Write ${NAME} to take a value from the environment.", mapOf("string"), func(r *reader, n *node) {
			set, _ := r.vars(n, ":")
			merge(&p.Headers, set)
		}},
		span("timeout", "How long it may be silent (default 5m).", &p.Timeout),
		toggle("strict", nil, "Whether models are held to the schemas of all tools, where the vendor can (default false).", func(on bool) { p.Strict = on }),
		{"extra", []string{"extra_body"}, "Members of every request beside those that the host writes, such as {reasoning_effort: low}.", typed("object"), func(r *reader, n *node) {
			if n.kind != mapNode {
				r.problem("want a map, not %s", n.what())
				return
			}
			p.Extra = n.tree().JSON()
		}},
		text("project", nil, "Of Google Cloud: the kind gemini then is Vertex AI.", &p.Project),
		text("region", []string{"location"}, "Of Vertex AI, such as europe-west4, or global.", &p.Region),
		{"token_command", nil, "The program, with arguments, that writes an access token for Vertex AI: [gcloud, auth, print-access-token].", listOf("string"),
			func(r *reader, n *node) { p.TokenCommand = r.texts(n) }},
		text("file", []string{"script"}, "The answers of a scripted model, relative to this file.", &p.File),
		{"models", []string{"model"}, "Its models: names, or maps.", map[string]any{"oneOf": []any{typed("string"), map[string]any{"type": "array", "items": orSection("string", modelFields(&registry.Model{}))}}},
			func(r *reader, n *node) { p.Models = r.models(n) }},
	}
}

func modelFields(m *registry.Model) []field {
	price := func(name string, also []string, into *float64) field {
		return field{name, also, "What a million tokens cost; not known if not given.", map[string]any{"type": "number", "minimum": 0}, func(r *reader, n *node) { *into = r.price(n) }}
	}
	prices := []field{
		price("input", nil, &m.Price.Input), price("output", nil, &m.Price.Output),
		price("cache_read", []string{"cached_input"}, &m.Price.CacheRead), price("cache_write", nil, &m.Price.CacheWrite),
	}
	return []field{
		{"name", []string{"id", "model"}, "As the provider names it.", typed("string"), func(r *reader, n *node) { m.Name = r.text(n) }},
		number("window", []string{"context_window", "context"}, "Tokens of a request and its answer together; what is known of the model if not given.", &m.Window),
		number("max_output", []string{"max_tokens", "max_output_tokens"}, "Tokens of an answer; what is known of the model if not given.", &m.MaxOutput),
		{"prices", []string{"price"}, "What tokens cost, by the million.", objectOf(prices), func(r *reader, n *node) { r.members(n, prices) }},
		toggle("images", []string{"vision"}, "Whether it takes images; what is known of the model if not given.", func(on bool) { m.Images = &on }),
	}
}

// provider reads one.
func (r *reader) provider(name string, n *node) registry.Provider {
	p := registry.Provider{Name: name}
	r.members(n, providerFields(&p))
	if p.Kind == "" && !(n.kind == mapNode && slices.ContainsFunc(n.pairs, func(p pair) bool { return slices.Contains([]string{"kind", "type", "vendor"}, plain(p.key)) })) {
		p.Kind = kindOf(name, p)
	}
	return p
}

// kindOf is the kind of a provider that does not say: what its name or file says,
// or openai, as most are compatible with that.
func kindOf(name string, p registry.Provider) registry.Kind {
	switch {
	case p.File != "":
		return registry.Scripted
	case p.Project != "":
		return registry.Gemini
	case p.BaseURL == "" && slices.Contains(registry.Kinds(), strings.ToLower(name)):
		return registry.Kind(strings.ToLower(name))
	}
	return registry.OpenAI
}

// models reads a list of models, or the name of one.
func (r *reader) models(n *node) (all []registry.Model) {
	switch {
	case n.kind == textNode:
		return []registry.Model{{Name: n.text}}
	case n.kind != listNode:
		r.problem("want a list of models, not %s", n.what())
		return nil
	}
	path := r.field
	for i, item := range n.items {
		r.field, r.line = path+"["+strconv.Itoa(i)+"]", item.line
		var m registry.Model
		if item.kind == textNode {
			m.Name = item.text
		} else {
			r.members(item, modelFields(&m))
		}
		m.Window, m.MaxOutput = min(m.Window, math.MaxInt32), min(m.MaxOutput, math.MaxInt32)
		all = append(all, m)
	}
	r.field = path
	return all
}
