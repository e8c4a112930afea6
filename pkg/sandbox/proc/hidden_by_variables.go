package proc

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// storeVariables lists the environment variables that say where a credential
// store is. in is the path of the store below the variable's value, "" if the
// value is the store.
var storeVariables = [...]struct{ name, in string }{
	{"AWS_SHARED_CREDENTIALS_FILE", ""}, {"AWS_CONFIG_FILE", ""}, {"AWS_WEB_IDENTITY_TOKEN_FILE", ""},
	{"AZURE_CONFIG_DIR", ""}, {"CLOUDSDK_CONFIG", ""}, {"GOOGLE_APPLICATION_CREDENTIALS", ""},
	{"GH_CONFIG_DIR", ""}, {"GNUPGHOME", ""}, {"KUBECONFIG", ""}, {"NETRC", ""}, {"PGPASSFILE", ""}, {"REGISTRY_AUTH_FILE", ""},
	{"DOCKER_CONFIG", "config.json"}, {"CURL_HOME", ".netrc"}, {"XDG_CONFIG_HOME", "gh"}, {"XDG_CONFIG_HOME", "gcloud"},
	{"HISTFILE", ""}, {"MYSQL_HISTFILE", ""}, {"NODE_REPL_HISTORY", ""}, {"PSQL_HISTORY", ""}, {"PYTHON_HISTORY", ""}, {"SQLITE_HISTORY", ""},
	{"CARGO_HOME", "credentials"}, {"CARGO_HOME", "credentials.toml"}, {"HF_HOME", "token"}, {"HF_TOKEN_PATH", ""},
	{"CODEX_HOME", "auth.json"}, {"CLAUDE_CONFIG_DIR", ".credentials.json"}, {"COMPOSER_HOME", "auth.json"}, {"KAGGLE_CONFIG_DIR", "kaggle.json"},
	{"XDG_CONFIG_HOME", "git/credentials"}, {"XDG_CONFIG_HOME", "rclone"}, {"XDG_CONFIG_HOME", "op"}, {"XDG_CONFIG_HOME", "age"}, {"XDG_CONFIG_HOME", "glab-cli"}, {"XDG_CONFIG_HOME", "composer/auth.json"}, {"XDG_CONFIG_HOME", "sops"},
	{"XDG_DATA_HOME", "keyrings"}, {"XDG_DATA_HOME", "fish/fish_history"}, {"ZDOTDIR", ".zsh_history"}, {"ZDOTDIR", ".zhistory"},
}

// settingsVariables lists the variables with the path of a settings file that
// is only masked with network access.
var settingsVariables = [...]string{"NPM_CONFIG_USERCONFIG", "npm_config_userconfig"}

// storesFromVariables returns the paths of the stores given by environment
// variables. It leaves out paths that cannot be masked, such as /dev/null or a
// root, and adds some of these to s.gaps.
func (r *Runner) storesFromVariables(s *spec, rules Rules) (stores []string) {
	addStore := func(path, variable string) {
		if !filepath.IsAbs(path) || rules.ExplicitlyAllowed(filepath.Clean(path)) {
			return
		}
		resolved, err := filepath.EvalSymlinks(path)
		if err != nil || rules.ExplicitlyAllowed(resolved) {
			return
		}
		switch why := s.whyUnmaskable(resolved); why {
		case "":
			stores = append(stores, filepath.Clean(path), resolved)
		case "system":
		default:
			s.gaps = append(s.gaps, fmt.Sprintf("%s, which %s names: it holds %s", pathname.Escape(resolved), variable, why))
		}
	}
	for _, v := range storeVariables {
		for _, value := range filepath.SplitList(r.config.getenv(v.name)) {
			if value != "" {
				addStore(filepath.Join(value, v.in), v.name)
			}
		}
	}
	if r.config.hasNetwork() {
		for _, name := range settingsVariables {
			addStore(r.config.getenv(name), name)
		}
	}
	return stores
}

// getenv returns the value of a variable in Config.Environ, "" if it is not
// set.
func (c *Config) getenv(name string) (value string) {
	for _, pair := range c.Environ {
		if rest, ok := strings.CutPrefix(pair, name+"="); ok {
			value = rest
		}
	}
	return value
}
