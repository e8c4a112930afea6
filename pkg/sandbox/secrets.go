package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// maybeSecret reports whether DeniedIn or Masked may be true for a name in
// whatever directory. It tells most names apart once, when a directory is
// read, which a search that remembers directories need not do again.
func maybeSecret(name string) bool {
	return !pathname.IsASCII(name) || secretName(name) || secretStore(name, "") || maskedName(name)
}

// maybeSecretAbove reports whether DeniedIn may be true for other names in a
// directory of this name.
func maybeSecretAbove(name string) bool {
	return name != "" && (name[0] == '.' || name[0] == '_' || name[0] == '#') || !pathname.IsASCII(name) || inStoreDir(name)
}

// secretPath looks at each component from the last to the first. Letter case
// never matters, since on many file systems it does not.
func secretPath(path string) bool {
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
			if last && secretName(name) || secretStore(name, path[end:]) {
				return true
			}
			last, odd = false, false
		}
		end = i
	}
	return false
}

// secretStore reports whether a component is a credential store, which makes
// all beneath it secret. rest is the path behind it.
func secretStore(name, rest string) bool {
	name = undecorated(name)
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
		return pathname.EqualFold(name, ".vault-token")
	case 15:
		return pathname.EqualFold(name, ".password-store")
	case 16:
		return pathname.EqualFold(name, ".git-credentials")
	}
	return rest != "" && storeIn(name, rest)
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

// storeIn reports whether a path below a directory of this name is in one of
// storesIn.
func storeIn(name, rest string) bool {
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
			if next, at = cutPart(at); !pathname.EqualFold(undecorated(pathname.Fold(next)), part) {
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

// inStoreDir reports whether a store of storesIn is more than one level below
// its directory in a directory of this name.
func inStoreDir(above string) bool {
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

// secretName reports whether a last component is the name of a private key,
// a key store, Terraform state or a shell history.
func secretName(name string) bool {
	name = undecorated(name)
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
		if pathname.EqualFold(name, "ConsoleHost_history.txt") {
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

// maskedName reports whether a file of this name holds settings some of whose
// values are secrets.
func maskedName(name string) bool {
	if !pathname.IsASCII(name) {
		name = pathname.Fold(name)
	}
	bare := undecorated(name)
	for _, settings := range [...]string{".env", ".npmrc"} {
		if len(bare) < len(settings) || !pathname.EqualFold(bare[:len(settings)], settings) {
			continue
		}
		rest := bare[len(settings):]
		return rest == "" || !wordByte(rest[0]) && !(len(bare) == len(name) && template(rest[1:]))
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

// IsPrivateKey reports whether a file that begins with head begins as a
// private key in PEM form, also behind the parameters or the attributes that
// openssl writes before it, and in UTF-16 as some shells redirect to. A
// kilobyte is enough.
func IsPrivateKey(head []byte) bool {
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		head = bytes.ReplaceAll(head[2:], []byte{0}, nil)
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	before := bytes.HasPrefix(head, []byte("Bag Attributes")) || bytes.HasPrefix(head, []byte("Key Attributes"))
	for line := range bytes.Lines(head) {
		kind, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("-----BEGIN "))
		switch {
		case ok && (bytes.Contains(kind, []byte("PRIVATE KEY-----")) || bytes.Contains(kind, []byte("PRIVATE KEY BLOCK-----"))):
			return true
		case ok && bytes.HasSuffix(kind, []byte(" PARAMETERS-----")):
			before = true
		case !before:
			return false
		}
	}
	return false
}
