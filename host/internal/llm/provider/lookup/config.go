package lookup

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/provider"
)

// A Kind is the protocol of a provider.
type Kind string

// The kinds.
const (
	OpenAI    Kind = "openai" // also for compatible servers
	Anthropic Kind = "anthropic"
	Gemini    Kind = "gemini" // with Project: Vertex AI
	Scripted  Kind = "scripted"
	Command   Kind = "command"
)

// Kinds returns all kinds.
func Kinds() []string {
	return []string{string(OpenAI), string(Anthropic), string(Gemini), string(Scripted), string(Command)}
}

// Config holds the models. The zero value means the models found on this machine and
// in the environment.
type Config struct {
	Default   string     // name of a model, as for Get; "": the first configured model, or one that is found
	Providers []Provider // in the order of the file
	Found     []Provider // providers with a key in the environment; used if Providers has no model
}

// A Provider is a source of models.
type Provider struct {
	Name string
	Kind Kind
	Why  string // why the provider exists although it is not configured; "": it is configured

	BaseURL string // "": the vendor's address
	KeyEnv  string // name of the environment variable with the key; "": no key is sent
	Key     secret.Text
	Headers map[string]secret.Text
	Timeout time.Duration   // longest time without data from the provider; 0: the default
	Strict  bool            // enforce the schemas of all tools (strict mode)
	Extra   json.RawMessage // a JSON object whose members are added to every request

	Project      string // project in Vertex AI
	Region       string
	TokenCommand []string // command that prints an access token

	File string // file with the answers of a scripted model

	Models []Model // empty: the models that the provider lists, or any name
}

// A Model is a configured model of a provider.
type Model struct {
	Name      string
	Window    int
	MaxOutput int
	Price     provider.Price
	Images    *bool // nil: as known for the model's name
	Family    string
}

// Validate returns an error that names the wrong field.
func (c Config) Validate() error {
	seen := map[string]bool{}
	for _, p := range c.Providers {
		at := "models: providers." + p.Name
		if err := p.validate(); err != nil {
			return fmt.Errorf("%s.%w", at, err)
		}
		if seen[p.Name] {
			return fmt.Errorf("%s: appears twice", at)
		}
		seen[p.Name] = true
	}
	if c.hasUnknownDefault() {
		return fmt.Errorf("models: default: no provider lists a model %q; write PROVIDER/NAME for an unlisted model", c.Default)
	}
	return nil
}

// hasUnknownDefault reports whether no provider can have the default model: all
// providers have lists of models, and none has it.
func (c Config) hasUnknownDefault() bool {
	if c.Default == "" || c.Default == "auto" || c.Default == string(Command) || len(c.Providers) == 0 {
		return false
	}
	all := slices.Concat(c.Providers, c.Found)
	if _, ok := findByVendor(all, c.Default); ok {
		return false
	}
	return !slices.ContainsFunc(all, func(p Provider) bool {
		return p.Name == c.Default || strings.HasPrefix(c.Default, p.Name+"/") ||
			p.Kind == OpenAI && len(p.Models) == 0 || slices.ContainsFunc(p.Models, func(m Model) bool { return m.Name == c.Default })
	})
}

// validate returns an error that names the first wrong setting.
func (p Provider) validate() error {
	switch {
	case p.Name == "" || strings.ContainsAny(p.Name, "/ \t\r\n"):
		return fmt.Errorf("name: a provider name must not be empty or contain / or spaces")
	case !slices.Contains(Kinds(), string(p.Kind)):
		return fmt.Errorf("kind: want one of %s", strings.Join(Kinds(), ", "))
	case p.Kind == Scripted && p.File == "":
		return fmt.Errorf("file: a scripted model needs a file with its answers")
	case p.Kind != Scripted && p.File != "":
		return fmt.Errorf("file: only for scripted models")
	case p.Timeout < 0:
		return fmt.Errorf("timeout: must not be negative")
	case p.Project == "" && (p.Region != "" || len(p.TokenCommand) > 0):
		return fmt.Errorf("project: region and token_command are for Vertex AI, which needs a project")
	case p.Project != "" && p.Kind != Gemini:
		return fmt.Errorf("project: only for Vertex AI (kind gemini)")
	case p.Project != "" && (p.Region == "" || len(p.TokenCommand) == 0):
		return fmt.Errorf("project: Vertex AI also needs a region and a token_command")
	case p.Project != "" && strings.ContainsAny(p.Project+p.Region, "/?# \\"):
		return fmt.Errorf("project: invalid characters in project or region")
	}
	if p.BaseURL != "" {
		u, err := url.Parse(p.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return fmt.Errorf("base_url: want an address that begins with http:// or https:// and has neither ? nor #")
		}
		if u.User != nil {
			return fmt.Errorf("base_url: contains a user name or password; use api_key_env instead")
		}
	}
	for name, value := range p.Headers {
		if strings.ContainsAny(name+value.Reveal(), "\r\n\x00") || name == "" {
			return fmt.Errorf("headers: invalid header name or value")
		}
	}
	return p.validateModels()
}

// validateModels returns an error that names the first wrong setting of a model.
func (p Provider) validateModels() error {
	seen := map[string]bool{}
	for i, m := range p.Models {
		at := fmt.Sprintf("models[%d]", i)
		switch {
		case m.Name == "":
			return fmt.Errorf("%s: name is missing", at)
		case seen[m.Name]:
			return fmt.Errorf("%s: %s appears twice", at, m.Name)
		case m.Window < 0 || m.MaxOutput < 0 || m.Price.Input < 0 || m.Price.Output < 0 || m.Price.CacheRead < 0 || m.Price.CacheWrite < 0:
			return fmt.Errorf("%s: a number is negative", at)
		case m.Window > 0 && m.MaxOutput > m.Window:
			return fmt.Errorf("%s: max_output is more than window", at)
		}
		seen[m.Name] = true
	}
	return nil
}
