package proc

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/redact"
)

// fixedEnv is what every command gets, over whatever the user has: no pager,
// no editor, no prompt and no colour waits for, or is shown to, a terminal.
var fixedEnv = [...]string{
	"TERM=dumb", "NO_COLOR=1", "PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat",
	"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "EDITOR=true", "VISUAL=true", "DEBIAN_FRONTEND=noninteractive",
}

// Environ is how the environment of a command is made.
type Environ struct {
	// Base is where it starts from, as os.Environ() gives it.
	Base []string
	// Extra are the call's own variables. They pass the same filter.
	Extra []string
	// PassSecrets are names of variables that are passed although they look
	// like secrets.
	PassSecrets []string
	// Writable are directories that commands may write into; PATH is left
	// without entries in them.
	Writable []string
	// filtered says that Base has only what passes.
	filtered bool
	// known is what was found of search paths before; nil: nothing.
	known *searchPaths
	// Set comes last and passes no filter: it is the server's own.
	Set []string
}

// Build returns the variables, each name once, sorted, and the names of those
// of Extra that were left out.
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
// leads out to an agent or a proxy of the user.
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

// secretValues begin values that are secrets and no keys of a service.
var secretValues = [...]string{"-----BEGIN ", "SG.", "https://hooks.slack.com/services/"}

// secretFields are those of connection strings and headers, in lower case.
var secretFields = [...]string{";password=", ";pwd=", ";accountkey=", ";sharedaccesskey=", ";sharedaccesssignature=", "authorization: "}

func looksSecret(name, value string) bool {
	upper := strings.ToUpper(name)
	switch {
	case upper == "PWD", upper == "OLDPWD", upper == "DESKTOP_SESSION", strings.HasPrefix(upper, "XDG_SESSION_"):
		return false
	case redact.Name(name), redact.Issued(value):
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

// credentialsInURL reports whether a value holds a URL with a password in it,
// or one for the web with a user, who then is a token.
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
