package proc

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/internal/redact"
)

// filterVariables returns the elements of pairs (NAME=value) that may reach a command,
// see mayPass.
func (e Environ) filterVariables(pairs []string) (passed []string) {
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok && e.mayPass(name, value) {
			passed = append(passed, pair)
		}
	}
	return passed
}

// mayPass reports whether a variable may reach a command: it is valid, does not
// control programs, and is no secret unless PassSecrets names it.
func (e Environ) mayPass(name, value string) bool {
	if name == "" || len(name)+1+len(value) > maxArgBytes || strings.ContainsAny(name, "\x00=") || strings.Contains(value, "\x00") {
		return false
	}
	return !controlsPrograms(name, value) && (!looksSecret(name, value) || slices.Contains(e.PassSecrets, name))
}

// controlsPrograms reports whether a variable makes programs run or load
// something, such as LD_PRELOAD, or names an agent, a proxy or a display of the
// user.
func controlsPrograms(name, value string) bool {
	upper := strings.ToUpper(name)
	switch upper {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4", "IFS", "CDPATH", "GLOBIGNORE", "BASH_XTRACEFD",
		"SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "GPG_AGENT_INFO", "GIT_ASKPASS", "SUDO_ASKPASS",
		"XAUTHORITY", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "XDG_RUNTIME_DIR",
		"TOOLROOM_TOKEN", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH":
		return true
	}
	return strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || strings.HasPrefix(upper, "BASH_FUNC_") ||
		strings.HasPrefix(upper, "DBUS_") || strings.HasPrefix(upper, "GIT_CONFIG") ||
		strings.HasSuffix(upper, "_PROXY") || strings.HasPrefix(value, "() {")
}

// secretValues lists prefixes of values that are secrets, besides the keys of
// services that redact.IsIssuedKey knows.
var secretValues = [...]string{"-----BEGIN ", "SG.", "https://hooks.slack.com/services/"}

// secretField matches a secret in a connection string, a query, JSON, a header
// or the arguments of a program: ;Password=x, ?password=x, "password": "x",
// -u user:x.
var secretField = lazyregexp.New(`(?i)(^|[^a-z0-9])(passw(or)?d|pwd|accountkey|sharedaccesskey|sharedaccesssignature|client_secret|access_token|api_?key)(["']?\s*=\s*["']?|["']\s*:\s*["'])[^\s"'&;,}]` +
	`|authorization: |(^|\s)(-u|--user)[ =]["']?[^\s:=]+:[^\s]`)

// looksSecret reports whether a variable's name or value suggests that the
// value is a password, key or token.
func looksSecret(name, value string) bool {
	upper := strings.ToUpper(name)
	switch {
	case upper == "PWD", upper == "OLDPWD", upper == "DESKTOP_SESSION", strings.HasPrefix(upper, "XDG_SESSION_"):
		return false
	case redact.IsSecretName(name), redact.IsIssuedKey(value):
		return true
	}
	for _, prefix := range secretValues {
		if len(value) > len(prefix)+8 && strings.HasPrefix(value, prefix) {
			return true
		}
	}
	return secretField().MatchString(value) || hasCredentialsInURL(value)
}

// hasCredentialsInURL reports whether a value holds a URL with a password, or an
// http or https URL with a user name, which may be a token.
func hasCredentialsInURL(value string) bool {
	for before, rest, ok := strings.Cut(value, "://"); ok; before, rest, ok = strings.Cut(rest, "://") {
		authority := rest
		if end := strings.IndexAny(rest, "/?# \t\n"); end >= 0 {
			authority = rest[:end]
		}
		if at := strings.LastIndexByte(authority, '@'); at > 0 {
			_, password, _ := strings.Cut(authority[:at], ":")
			if web := strings.HasSuffix(before, "http") || strings.HasSuffix(before, "https"); password != "" || web {
				return true
			}
		}
	}
	return false
}
