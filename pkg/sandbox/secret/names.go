// Package secret tells secrets by the names of files and by their content. It
// knows credential stores, private keys and shell histories, and masks the
// values of settings files. It opens no files: pkg/sandbox decides what is
// refused.
package secret

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// IsPath reports by its name whether the file or directory at a path is a
// secret: a credential store or something in one, a private key, a key store,
// Terraform state or a shell history. Letter case never matters, since on many
// file systems it does not. It is called for each entry of large trees and
// allocates nothing for ordinary names.
func IsPath(path string) bool {
	end, last, odd := len(path), true, false
	for i := len(path) - 1; i >= -1; i-- {
		if i >= 0 && !os.IsPathSeparator(path[i]) {
			odd = odd || path[i] >= utf8.RuneSelf
			continue
		}
		if i+1 < end {
			name := path[i+1 : end]
			if odd {
				name = pathname.Fold(name)
			}
			if last && isName(name) || isStore(name, path[end:]) {
				return true
			}
			last, odd = false, false
		}
		end = i
	}
	return false
}

// IsEntry is IsPath for the entry name of a directory that is not a secret
// itself. dir is the directory's path. IsEntry does not look at all components
// of the path again.
func IsEntry(dir, name string) bool {
	above, last := pathname.Base(dir), name
	if !pathname.IsASCII(above) {
		above = pathname.Fold(above)
	}
	if !pathname.IsASCII(last) {
		last = pathname.Fold(last)
	}
	return isName(last) || isStore(last, "") || isStore(above, name) || mayHoldStore(above) && IsPath(filepath.Join(dir, name))
}

// MaybeEntry reports whether IsEntry may be true for a name because of the name,
// whatever the directory, or IsSettings is true for it. A search that remembers
// directories asks once for each name and passes over most of them later.
func MaybeEntry(name string) bool {
	return !pathname.IsASCII(name) || isName(name) || isStore(name, "") || IsSettings(name)
}

// MaybeIn reports whether IsEntry may be true for further names in a directory,
// because of the directory's own name. dir is its path.
func MaybeIn(dir string) bool {
	name := pathname.Base(dir)
	return name != "" && (name[0] == '.' || name[0] == '_' || name[0] == '#') || !pathname.IsASCII(name) || mayHoldStore(name)
}

// IsSettings reports whether a file of this name holds settings some of whose
// values are secrets (.env, .env.*, .npmrc): Mask hides them.
func IsSettings(name string) bool {
	if !pathname.IsASCII(name) {
		name = pathname.Fold(name)
	}
	bare := original(name)
	for _, settings := range [...]string{".env", ".npmrc"} {
		if len(bare) < len(settings) || !pathname.EqualFold(bare[:len(settings)], settings) {
			continue
		}
		rest := bare[len(settings):]
		return rest == "" || !wordByte(rest[0]) && !(len(bare) == len(name) && template(rest[1:]))
	}
	return false
}

// isStore reports whether a component is a credential store, which makes
// everything in it secret. rest is the path after it.
func isStore(name, rest string) bool {
	name = original(name)
	if len(name) < 4 || name[0] != '.' && name[0] != '_' {
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
	case 12:
		if pathname.EqualFold(name, ".vault-token") {
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
// too: directory → paths below it.
var storesIn = map[string][]string{
	".cache":       {"huggingface/token"},
	".cargo":       {"credentials", "credentials.toml"},
	".claude":      {".credentials.json"},
	".codex":       {"auth.json"},
	".composer":    {"auth.json"},
	".config":      {"Bitwarden", "configstore", "containers/auth.json", "doctl", "flyctl", "gcloud", "gh", "git/credentials", "github-copilot", "google-chrome", "hcloud", "hub", "ngrok", "op", "rclone", "sops", "stripe"},
	".docker":      {"config.json"},
	".fly":         {"config.yml"},
	".gem":         {"credentials"},
	".gemini":      {"oauth_creds.json"},
	".huggingface": {"token"},
	".kaggle":      {"kaggle.json"},
	".local":       {"share/atuin/key", "share/keyrings", "share/opencode/auth.json"},
	".mozilla":     {"firefox"},
	".oci":         {"config"},
	".pulumi":      {"credentials.json"},
	".railway":     {"config.json"},
	".step":        {"secrets"},
	".subversion":  {"auth"},
	".terraform.d": {"credentials.tfrc.json"},
}

// StoreDirs returns the directories of a home that have credential stores as
// entries, relative to it and sorted.
func StoreDirs() []string {
	dirs := []string{".", filepath.FromSlash(".local/share/fish")}
	for dir, stores := range storesIn {
		for _, store := range stores {
			dirs = append(dirs, filepath.Join(dir, filepath.Dir(filepath.FromSlash(store))))
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// isStoreIn reports whether a path below a directory of this name is in one of
// storesIn.
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
			if next, at = cutPart(at); !isCopyOf(pathname.Fold(next), part) {
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

// mayHoldStore reports whether a store of storesIn is more than one level below
// its directory in a directory of this name.
func mayHoldStore(above string) bool {
	for _, name := range [...]string{"git", "containers", "huggingface", "share", "atuin", "opencode"} {
		if pathname.EqualFold(above, name) {
			return true
		}
	}
	return false
}

// cutPart returns the first component of a path, and the rest.
func cutPart(path string) (first, rest string) {
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

// isName reports whether a last component is the name of a private key,
// a key store, Terraform state or a shell history.
func isName(name string) bool {
	name = original(name)
	if name == "" { // nothing but characters that pathname.Fold drops
		return false
	}
	switch pathname.Lower(name[len(name)-1]) {
	case 'a': // id_rsa, id_dsa, id_ecdsa
		if pathname.EqualFold(name, "id_rsa") || pathname.EqualFold(name, "id_dsa") || pathname.EqualFold(name, "id_ecdsa") {
			return true
		}
	case '9':
		if pathname.EqualFold(name, "id_ed25519") {
			return true
		}
	case 'k':
		if pathname.EqualFold(name, "id_ecdsa_sk") || pathname.EqualFold(name, "id_ed25519_sk") {
			return true
		}
	case '2', 'x', 's':
		if pathname.HasSuffixFold(name, ".p12") || pathname.HasSuffixFold(name, ".pfx") || pathname.HasSuffixFold(name, ".jks") {
			return true
		}
	case 'e', 'y':
		if pathname.EqualFold(name, ".histfile") || pathname.EqualFold(name, ".history") || pathname.EqualFold(name, ".zhistory") || pathname.EqualFold(name, "fish_history") ||
			name[0] == '.' && pathname.HasSuffixFold(name, "_history") {
			return true
		}
	case 't':
		if pathname.EqualFold(strings.TrimPrefix(name, "."), "ConsoleHost_history.txt") {
			return true
		}
	}
	for i := 0; i+len(".tfstate") <= len(name); i++ {
		if name[i] == '.' && pathname.EqualFold(name[i:i+len(".tfstate")], ".tfstate") {
			return true
		}
	}
	return false
}

// template reports whether the end of a name says that the file has examples
// of settings only.
func template(end string) bool {
	for _, word := range [...]string{"example", "sample", "template", "dist"} {
		if at := len(end) - len(word); at >= 0 && pathname.EqualFold(end[at:], word) && (at == 0 || end[at-1] == '.') {
			return true
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}
