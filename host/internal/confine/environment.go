package confine

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/egress"
)

// passedVariables lists the variables of the host that each confined server gets.
var passedVariables = [...]string{
	"PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "COLUMNS", "LINES",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
	"TOOLROOM_RUN", "TOOLROOM_HOSTS",
}

// environment returns the variables of a confined server: those of the program's that
// passedVariables or the settings name, the configured ones, and all LC_*. HOME is the
// private home, unless the server's own settings set it.
func environment(p Program, s Settings, home string) []string {
	var env []string
	for _, pair := range p.Env {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "LC_") || slices.Contains(passedVariables[:], name) || slices.Contains(s.Env, name) || slices.Contains(p.Configured, name) {
			env = append(env, pair)
		}
	}
	if !slices.Contains(p.Configured, "HOME") {
		env = append(env, "HOME="+home)
	}
	return env
}

// downloaders lists the programs that download a server before they run it, from
// package registries.
var downloaders = [...]string{"npx", "npm", "pnpm", "yarn", "bunx", "bun", "uvx", "uv", "pipx", "go", "deno", "cargo"}

// DefaultNetwork returns the network access of a confined server without setting:
// registries for a program that downloads the server, else off.
func DefaultNetwork(program string) string {
	if slices.Contains(downloaders[:], filepath.Base(program)) {
		return "registries"
	}
	return "off"
}

// parseNetwork parses the network setting of a server; "" means DefaultNetwork for the
// command. It returns an error for an invalid setting.
func parseNetwork(command []string, setting string) (egress.Net, error) {
	if setting == "" {
		setting = DefaultNetwork(command[0])
	}
	return egress.ParseNet(setting)
}
