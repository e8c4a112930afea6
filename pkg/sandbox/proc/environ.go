package proc

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/redact"
)

// fixedEnv holds variables set for every command, whatever the user has. They
// make programs use no pager, editor, prompt or colour, since there is no
// terminal.
var fixedEnv = [...]string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "EDITOR=true", "VISUAL=true", "DEBIAN_FRONTEND=noninteractive",
}

// Environ describes how to build the environment of a command.
type Environ struct {
	// Base holds the initial variables, as os.Environ() returns them.
	Base []string
	// Extra holds the variables of the call. The same filter applies to them.
	Extra []string
	// PassSecrets are names of variables to pass although they look like
	// secrets.
	PassSecrets []string
	// Writable are directories that commands may write into. Entries of PATH
	// in them are removed.
	Writable []string
	// filtered means that Base has already been filtered.
	filtered bool
	// known caches the lookup of search paths; nil: no cache.
	known *searchPaths
	// Set holds the server's own variables. They override all others and are
	// not filtered.
	Set []string
}

// Build returns the variables, sorted and each name once, and the names of the
// variables of Extra that were refused.
func (e Environ) Build() (env, refused []string) {
	values := make(map[string]string, len(e.Base)+len(e.Extra)+len(e.Set)+len(fixedEnv))
	base := e.Base
	if !e.filtered {
		base = e.filter(base)
	}
	for _, pair := range base {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	for _, pair := range e.Extra {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || !e.passes(name, value) {
			refused = append(refused, name)
			continue
		}
		values[name] = value
	}
	if path, ok := values["PATH"]; ok {
		values["PATH"] = e.known.reduce(path, e.Writable)
	}
	if values["PATH"] == "" {
		values["PATH"] = "/usr/local/bin:/usr/bin:/bin"
	}
	for _, pair := range slices.Concat(fixedEnv[:], e.Set) {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	for name, value := range values {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env, refused
}

// filter returns the variables that pass.
func (e Environ) filter(pairs []string) (passed []string) {
	for _, pair := range pairs {
		if name, value, ok := strings.Cut(pair, "="); ok && e.passes(name, value) {
			passed = append(passed, pair)
		}
	}
	return passed
}

// passes reports whether a variable may reach a command.
func (e Environ) passes(name, value string) bool {
	if name == "" || len(name)+1+len(value) > maxScript || strings.ContainsAny(name, "\x00=") || strings.Contains(value, "\x00") {
		return false
	}
	return !steers(name, value) && (!looksSecret(name, value) || slices.Contains(e.PassSecrets, name))
}

// steers reports whether a variable makes programs run or load something, or
// names an agent or a proxy of the user.
func steers(name, value string) bool {
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

// secretValues lists prefixes of values that are secrets, except service keys,
// which redact.Issued knows.
var secretValues = [...]string{"-----BEGIN ", "SG.", "https://hooks.slack.com/services/"}

// secretFields lists fields of connection strings and headers that hold
// secrets, in lower case.
var secretFields = [...]string{";password=", ";pwd=", ";accountkey=", ";sharedaccesskey=", ";sharedaccesssignature=", "authorization: "}

// looksSecret reports whether a variable's name or value suggests a secret.
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
	lower := ";" + strings.ToLower(value)
	if slices.ContainsFunc(secretFields[:], func(field string) bool { return strings.Contains(lower, field) }) {
		return true
	}
	return credentialsInURL(value)
}

// credentialsInURL reports whether a value holds a URL with a password, or an
// http or https URL with a user name, which may be a token.
func credentialsInURL(value string) bool {
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
