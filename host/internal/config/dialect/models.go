package dialect

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider/lookup"
)

// modelsFields are the members of models:.
func modelsFields(m *lookup.Config) []field {
	return []field{
		{"default", nil, "The default model: NAME, PROVIDER/NAME or PROVIDER; default: the first one configured or found.", typeSchema("string"),
			func(r *reader, n *node) { m.Default = r.text(n) }},
		{"providers", nil, "Model providers, by name.", map[string]any{"type": "object", "propertyNames": map[string]any{"pattern": `^[^/\s]+$`}, "additionalProperties": objectSchema(providerFields(&lookup.Provider{}))},
			func(r *reader, n *node) {
				r.eachMember(n, func(name string, value *node) { m.Providers = append(m.Providers, r.provider(name, value)) })
			}},
	}
}

// providerFields returns the fields of a provider of models.
func providerFields(p *lookup.Provider) []field {
	return []field{
		{"kind", []string{"type", "vendor"}, "API of the provider: openai (also for compatible APIs; default), anthropic or gemini. scripted: answers from file. command: no model, each message is a call.", enumSchema(lookup.Kinds()...),
			func(r *reader, n *node) { p.Kind = lookup.Kind(r.choice(n, lookup.Kinds()...)) }},
		textField("base_url", []string{"url", "endpoint", "api_base"}, "Base URL of the API, such as http://127.0.0.1:11434/v1; default: the vendor's.", &p.BaseURL),
		textField("api_key_env", []string{"auth_token_env", "key_env"}, "Name of the environment variable that holds the API key; default: the vendor's variable, such as OPENAI_API_KEY; none if base_url or project is set.", &p.KeyEnv),
		{"headers", []string{"extra_headers"}, "HTTP headers of every request. Write ${NAME} to take a value from the environment.", mapSchema("string"), func(r *reader, n *node) {
			set, _ := r.vars(n, ":")
			mergeInto(&p.Headers, set)
		}},
		durationField("timeout", "Maximum time without data from the provider during a request (default 5m).", &p.Timeout),
		boolField("strict", nil, "Whether models must follow the schemas of all tools, if the vendor supports it (default false).", func(on bool) { p.Strict = on }),
		{"extra", []string{"extra_body"}, "Additional fields of every request, such as {reasoning_effort: low}.", typeSchema("object"), func(r *reader, n *node) {
			if n.kind != mapNode {
				r.problem("want a map, not %s", n.kindWord())
				return
			}
			p.Extra = n.toTree().JSON()
		}},
		textField("project", nil, "Google Cloud project; with it, the kind gemini uses Vertex AI.", &p.Project),
		textField("region", []string{"location"}, "Vertex AI region, such as europe-west4, or global.", &p.Region),
		{"token_command", nil, "Command that prints an access token for Vertex AI, such as [gcloud, auth, print-access-token].", listSchema("string"),
			func(r *reader, n *node) { p.TokenCommand = r.texts(n) }},
		textField("file", []string{"script"}, "File with the answers of a scripted model, relative to this file.", &p.File),
		{"models", []string{"model"}, "Models of the provider: names, or maps.", map[string]any{"oneOf": []any{typeSchema("string"), map[string]any{"type": "array", "items": typeOrObjectSchema("string", modelFields(&lookup.Model{}))}}},
			func(r *reader, n *node) { p.Models = r.models(n) }},
	}
}

// modelFields returns the fields of a model.
func modelFields(m *lookup.Model) []field {
	price := func(name, what string, also []string, into *float64) field {
		return field{name, also, "Price of a million " + what + "; default: unknown.", map[string]any{"type": "number", "minimum": 0}, func(r *reader, n *node) { *into = r.price(n) }}
	}
	prices := []field{
		price("input", "input tokens", nil, &m.Price.Input), price("output", "output tokens", nil, &m.Price.Output),
		price("cache_read", "tokens read from the cache", []string{"cached_input"}, &m.Price.CacheRead), price("cache_write", "tokens written to the cache", nil, &m.Price.CacheWrite),
	}
	return []field{
		{"name", []string{"id", "model"}, "The provider's name for the model.", typeSchema("string"), func(r *reader, n *node) { m.Name = r.text(n) }},
		numberField("window", []string{"context_window", "context"}, "Context window: maximum tokens of a request and its answer together; default: the known value of the model.", &m.Window),
		numberField("max_output", []string{"max_tokens", "max_output_tokens"}, "Maximum tokens of an answer; default: the known value of the model.", &m.MaxOutput),
		{"prices", []string{"price"}, "Prices per million tokens, in a unit of your choice.", objectSchema(prices), func(r *reader, n *node) { r.readMembers(n, prices) }},
		boolField("images", []string{"vision"}, "Whether the model accepts images; default: the known value of the model.", func(on bool) { m.Images = &on }),
	}
}

// provider reads a provider of models. Without a kind it guesses one from the name and the
// address.
func (r *reader) provider(name string, n *node) lookup.Provider {
	p := lookup.Provider{Name: name}
	r.readMembers(n, providerFields(&p))
	if p.Kind == "" && !(n.kind == mapNode && slices.ContainsFunc(n.pairs, func(p pair) bool { return slices.Contains([]string{"kind", "type", "vendor"}, normalizeName(p.key)) })) {
		p.Kind = guessKind(name, p)
	}
	return p
}

// guessKind guesses the kind of a provider without kind: scripted if it has a file, gemini
// if it has a project, else its name if that is a kind, else openai, since most vendors
// are compatible with that.
func guessKind(name string, p lookup.Provider) lookup.Kind {
	switch {
	case p.File != "":
		return lookup.Scripted
	case p.Project != "":
		return lookup.Gemini
	case p.BaseURL == "" && slices.Contains(lookup.Kinds(), strings.ToLower(name)):
		return lookup.Kind(strings.ToLower(name))
	}
	return lookup.OpenAI
}

// models reads a list of models, or the name of one.
func (r *reader) models(n *node) (all []lookup.Model) {
	switch {
	case n.kind == textNode:
		return []lookup.Model{{Name: n.text}}
	case n.kind != listNode:
		r.problem("want a list of models, not %s", n.kindWord())
		return nil
	}
	path := r.field
	for i, item := range n.items {
		r.field, r.line = path+"["+strconv.Itoa(i)+"]", item.line
		var m lookup.Model
		if item.kind == textNode {
			m.Name = item.text
		} else {
			r.readMembers(item, modelFields(&m))
		}
		m.Window, m.MaxOutput = min(m.Window, math.MaxInt32), min(m.MaxOutput, math.MaxInt32)
		all = append(all, m)
	}
	r.field = path
	return all
}
