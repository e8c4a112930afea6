package upstream

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/secret"
)

// leastSecret is the length from which a value is hidden: shorter ones are parts
// of words.
const leastSecret = 6

// Concealed is a text without the credentials that the server was given.
func (s *Server) Concealed(text string) string { return s.cfg.conceal(text) }

// conceal hides in what a server says of itself the credentials that it was
// given. Servers print their settings when they do not like them.
func (c Config) conceal(text string) string {
	if text == "" {
		return text
	}
	var values []string
	add := func(value string) {
		for _, part := range append(strings.Fields(value), value) { // Bearer …
			if len(part) >= leastSecret && !slices.Contains([]string{"bearer", "basic"}, strings.ToLower(part)) {
				values = append(values, part)
			}
		}
	}
	for _, value := range c.Secrets {
		add(value.Reveal())
	}
	for name, value := range c.Headers {
		if secret.Given(name, value.Reveal()) {
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
