package secret

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// isStore reports whether name, a component of a path, is a credential store,
// which makes everything in it secret. rest is the path after it.
func isStore(name, rest string) bool {
	name = originalName(name)
	if len(name) < 3 || name[0] != '.' && name[0] != '_' {
		return false
	}
	switch len(name) {
	case 4:
		if pathname.EqualFold(name, ".ssh") || pathname.EqualFold(name, ".aws") {
			return true
		}
	case 5:
		if pathname.EqualFold(name, ".kube") {
			return true
		}
	case 6:
		if pathname.EqualFold(name, ".gnupg") || pathname.EqualFold(name, ".azure") || pathname.EqualFold(name, ".netrc") || pathname.EqualFold(name, "_netrc") || pathname.EqualFold(name, ".s3cfg") {
			return true
		}
	case 7:
		if pathname.EqualFold(name, ".pgpass") || pathname.EqualFold(name, ".pypirc") || pathname.EqualFold(name, ".my.cnf") {
			return true
		}
	case 8:
		if pathname.EqualFold(name, ".msmtprc") {
			return true
		}
	case 12:
		if pathname.EqualFold(name, ".vault-token") || pathname.EqualFold(name, ".claude.json") || pathname.EqualFold(name, ".mylogin.cnf") {
			return true
		}
	case 15:
		if pathname.EqualFold(name, ".password-store") {
			return true
		}
	case 16:
		if pathname.EqualFold(name, ".git-credentials") {
			return true
		}
	}
	return rest != "" && isStoreIn(name, rest)
}

// storesIn lists the credential stores in directories that hold other files,
// too: directory → paths below it. homeSecrets of pkg/sandbox/proc/hidden.go
// repeats the stores that are hidden from commands even before they exist.
var storesIn = map[string][]string{
	".cache":       {"huggingface/token"},
	".cargo":       {"credentials", "credentials.toml"},
	".claude":      {".credentials.json"},
	".codex":       {"auth.json"},
	".composer":    {"auth.json"},
	".config":      {"Bitwarden", "BraveSoftware", "age", "chromium", "composer/auth.json", "configstore", "containers/auth.json", "doctl", "flyctl", "gcloud", "gh", "git/credentials", "github-copilot", "glab-cli", "google-chrome", "hcloud", "hub", "microsoft-edge", "ngrok", "op", "opera", "pulumi/credentials.json", "rclone", "solana/id.json", "sops", "stripe", "vivaldi"},
	".docker":      {"config.json"},
	".fly":         {"config.yml"},
	".gem":         {"credentials"},
	".gemini":      {"oauth_creds.json"},
	".huggingface": {"token"},
	".ivy2":        {".credentials"},
	".kaggle":      {"kaggle.json"},
	".local":       {"share/atuin/key", "share/com.vercel.cli", "share/keyrings", "share/opencode/auth.json"},
	".m2":          {"settings-security.xml"},
	".mozilla":     {"firefox"},
	".oci":         {"config"},
	".pulumi":      {"credentials.json"},
	".railway":     {"config.json"},
	".sbt":         {".credentials"},
	".step":        {"secrets"},
	".subversion":  {"auth"},
	".terraform.d": {"credentials.tfrc.json"},
	".vercel":      {"auth.json"},
}

// settingsIn lists settings of build tools that may contain secrets: directory →
// files. Like .npmrc they are no stores, since builds need them.
var settingsIn = map[string]string{".gradle": "gradle.properties", ".m2": "settings.xml"}

// StoreDirs returns the directories of a home that have credential stores, or
// settings with secrets, as entries. They are relative to the home and sorted.
func StoreDirs() []string {
	dirs := []string{".", filepath.FromSlash(".local/share/fish")}
	for dir, stores := range storesIn {
		for _, store := range stores {
			dirs = append(dirs, filepath.Join(dir, filepath.Dir(filepath.FromSlash(store))))
		}
	}
	for dir := range settingsIn {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// isStoreIn reports whether rest, a path below a directory called name, is one
// of storesIn or in one.
func isStoreIn(name, rest string) bool {
	stores, ok := storesIn[name]
	if !ok {
		if stores, ok = storesIn[strings.ToLower(name)]; !ok {
			return false
		}
	}
	for _, store := range stores {
		at, matches := rest, true
		for part := range strings.SplitSeq(store, "/") {
			var next string
			if next, at = cutComponent(at); !isCopyOf(pathname.Fold(next), part) {
				matches = false
				break
			}
		}
		if matches {
			return true
		}
	}
	return false
}

// mayHoldStore reports whether a directory called above, below one of storesIn,
// may contain a store: some stores are two or more levels deep.
func mayHoldStore(above string) bool {
	for _, name := range [...]string{"git", "containers", "composer", "huggingface", "pulumi", "share", "solana", "atuin", "opencode"} {
		if pathname.EqualFold(above, name) {
			return true
		}
	}
	return false
}

// cutComponent returns the first component of a path, without leading
// separators, and the rest, which begins with a separator or is "".
func cutComponent(path string) (first, rest string) {
	for path != "" && os.IsPathSeparator(path[0]) {
		path = path[1:]
	}
	for i := range len(path) {
		if os.IsPathSeparator(path[i]) {
			return path[:i], path[i:]
		}
	}
	return path, ""
}
