package lookup

import (
	"cmp"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
)

// KeyEnv returns the environment variable with the key for the vendor's own address,
// "" if it uses no key.
func (k Kind) KeyEnv() string {
	switch k {
	case OpenAI:
		return "OPENAI_API_KEY"
	case Anthropic:
		return "ANTHROPIC_API_KEY"
	case Gemini:
		return "GEMINI_API_KEY"
	}
	return ""
}

// Vendor returns the wire format of a kind, "" if it has none.
func (k Kind) Vendor() llm.Vendor {
	switch k {
	case OpenAI:
		return llm.OpenAI
	case Anthropic:
		return llm.Anthropic
	case Gemini:
		return llm.Gemini
	}
	return ""
}

// FromEnv returns the providers with keys in the environment. Their models are those
// of the environment's variables, or a default model for general use.
//
//	OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL
//	ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, ANTHROPIC_MODEL
//	GEMINI_API_KEY or GOOGLE_API_KEY, GEMINI_MODEL
//	GOOGLE_GENAI_USE_VERTEXAI=true, GOOGLE_CLOUD_PROJECT, GOOGLE_CLOUD_LOCATION, GEMINI_MODEL: Vertex AI, with gcloud's token
func FromEnv(getenv func(string) string) []Provider {
	var found []Provider
	value := func(name string) string { return strings.TrimSpace(getenv(name)) }
	add := func(p Provider, model string) {
		if model != "" {
			p.Models = []Model{{Name: model}}
		}
		if p.validate() == nil { // otherwise the variables are meant for other programs
			found = append(found, p)
		}
	}
	openaiKey, openaiURL := value("OPENAI_API_KEY"), strings.TrimRight(value("OPENAI_BASE_URL"), "/")
	if openaiKey != "" || openaiURL != "" {
		model, why := value("OPENAI_MODEL"), "OPENAI_API_KEY is set"
		if model == "" && openaiURL == "" {
			model = "gpt-5-mini"
		}
		if openaiURL != "" {
			why = "OPENAI_BASE_URL is set"
		}
		add(Provider{Name: "openai", Kind: OpenAI, Why: why, KeyEnv: "OPENAI_API_KEY", Key: secret.Text(openaiKey), BaseURL: openaiURL}, model)
	}
	if key := value("ANTHROPIC_API_KEY"); key != "" {
		add(Provider{Name: "anthropic", Kind: Anthropic, Why: "ANTHROPIC_API_KEY is set", KeyEnv: "ANTHROPIC_API_KEY", Key: secret.Text(key),
			BaseURL: strings.TrimRight(value("ANTHROPIC_BASE_URL"), "/")}, cmp.Or(value("ANTHROPIC_MODEL"), "claude-sonnet-4-5"))
	}
	gemini := cmp.Or(value("GEMINI_MODEL"), "gemini-2.5-flash")
	for _, name := range []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		if key := value(name); key != "" {
			add(Provider{Name: "gemini", Kind: Gemini, Why: name + " is set", KeyEnv: name, Key: secret.Text(key)}, gemini)
			break
		}
	}
	if use := strings.ToLower(value("GOOGLE_GENAI_USE_VERTEXAI")); use == "true" || use == "1" {
		if project := value("GOOGLE_CLOUD_PROJECT"); project != "" {
			add(Provider{Name: "vertex", Kind: Gemini, Why: "GOOGLE_GENAI_USE_VERTEXAI and GOOGLE_CLOUD_PROJECT are set", Project: project,
				Region: cmp.Or(value("GOOGLE_CLOUD_LOCATION"), "global"), TokenCommand: []string{"gcloud", "auth", "print-access-token"}}, gemini)
		}
	}
	return found
}
