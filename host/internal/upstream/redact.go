package upstream

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// minSecretLength is the least length in bytes of a redacted value. Shorter values
// occur in ordinary words.
const minSecretLength = 6

// Redacted returns text with the credentials that the server was given masked.
func (s *Server) Redacted(text string) string { return s.cfg.redact(text) }

// redact masks the server's credentials in text that the server wrote: servers print their
// settings when they reject them.
func (c Config) redact(text string) string {
	if text == "" {
		return text
	}
	var values []string
	add := func(value string) {
		for _, part := range append(strings.Fields(value), value) { // such as "Bearer …"
			if len(part) >= minSecretLength && !slices.Contains([]string{"bearer", "basic"}, strings.ToLower(part)) {
				values = append(values, part)
			}
		}
	}
	for _, value := range c.Secrets {
		add(value.Reveal())
	}
	for name, value := range c.Headers {
		if secret.IsCredential(name, value.Reveal()) {
			add(value.Reveal())
		}
	}
	add(c.Token.Reveal())
	for _, value := range c.helperValues.all() {
		add(value)
	}
	if c.Auth != nil {
		for _, token := range c.Auth.Secrets() {
			add(token)
		}
	}
	if u, err := url.Parse(c.URL); err == nil && c.URL != "" {
		if password, ok := u.User.Password(); ok {
			add(password)
		}
		for _, all := range u.Query() {
			for _, value := range all {
				add(value)
			}
		}
	}
	slices.SortFunc(values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, value := range slices.Compact(values) {
		pairs = append(pairs, value, secret.Hidden)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
