// Package secret tells secrets by the names of files and by their content. It
// knows credential stores, private keys and shell histories, and masks the
// values of settings files. It opens no files: pkg/sandbox decides what is
// refused.
package secret

import (
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

// IsPath reports, by names only, whether the file or directory at a path is a
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
			if last && isSecretName(name) || isStore(name, path[end:]) {
				return true
			}
			last, odd = false, false
		}
		end = i
	}
	return false
}

// IsEntry reports whether the entry name of the directory at path dir is a secret, as
// IsPath does for the joined path. dir must not be a secret itself: IsEntry does not look
// at all components of the path again.
func IsEntry(dir, name string) bool {
	above, last := pathname.Base(dir), name
	if !pathname.IsASCII(above) {
		above = pathname.Fold(above)
	}
	if !pathname.IsASCII(last) {
		last = pathname.Fold(last)
	}
	return isSecretName(last) || isStore(last, "") || isStore(above, name) || mayHoldStore(above) && IsPath(filepath.Join(dir, name))
}

// MaybeEntry reports whether IsEntry may be true for a name because of the name,
// whatever the directory, or IsSettings is true for it. A search that remembers
// directories asks once for each name and passes over most of them later.
func MaybeEntry(name string) bool {
	return !pathname.IsASCII(name) || isSecretName(name) || isStore(name, "") || IsSettings(name)
}

// MaybeIn reports whether IsEntry may be true for further names in a directory,
// because of the directory's own name. dir is its path.
func MaybeIn(dir string) bool {
	name := pathname.Base(dir)
	return name != "" && (name[0] == '.' || name[0] == '_' || name[0] == '#') || !pathname.IsASCII(name) || mayHoldStore(name)
}

// IsSettings reports whether a file of this name holds settings some of whose
// values are secrets (.env, .env.*, .npmrc, and copies such as env.bak): Mask hides
// them.
func IsSettings(name string) bool {
	if !pathname.IsASCII(name) {
		name = pathname.Fold(name)
	}
	bare := originalName(name)
	for _, settings := range [...]string{".env", ".npmrc"} {
		if isVisibleCopyOf(name, settings) {
			return true
		}
		if len(bare) < len(settings) || !pathname.EqualFold(bare[:len(settings)], settings) {
			continue
		}
		rest := bare[len(settings):]
		return rest == "" || !isWordByte(rest[0]) && !(len(bare) == len(name) && isTemplateEnding(rest[1:]))
	}
	return false
}

// IsSettingsPath reports whether the file at path is a settings file: its name is one for
// IsSettings, or its directory makes it one (~/.m2/settings.xml,
// ~/.gradle/gradle.properties).
func IsSettingsPath(path string) bool {
	name := pathname.Base(path)
	if IsSettings(name) {
		return true
	}
	above, ok := strings.CutSuffix(path, name)
	if !ok || len(above) < 2 {
		return false
	}
	settings := settingsIn[strings.ToLower(pathname.Base(above[:len(above)-1]))]
	return settings != "" && isCopyOf(pathname.Fold(name), settings)
}

// IsBuildSettings reports whether the settings file at a path is one that build tools
// read in a home: .npmrc, ~/.m2/settings.xml, ~/.gradle/gradle.properties.
func IsBuildSettings(path string) bool {
	name := pathname.Base(path)
	return isCopyOf(pathname.Fold(name), ".npmrc") || !IsSettings(name) && IsSettingsPath(path)
}

// isSecretName reports whether a last component is the name of a private key,
// a key store, Terraform state or a shell history.
func isSecretName(name string) bool {
	name = originalName(name)
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
		if pathname.HasSuffixFold(name, ".kdbx") || pathname.HasSuffixFold(name, ".p12") || pathname.HasSuffixFold(name, ".pfx") || pathname.HasSuffixFold(name, ".jks") {
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

// keyEndings are the endings of names of files that may contain a private key.
var keyEndings = [...]string{".pem", ".key", ".p8", ".pk8", ".asc", ".gpg", ".ppk", ".crt", ".cer", ".cert"}

// keyWords are the parts of names of files that may contain a private key.
var keyWords = [...]string{"rsa", "ecdsa", "ed25519", "privkey", "private", "secret", "deploy_key", "deploykey", "ssh_key", "sshkey"}

// MaybeKeyName reports whether a file's name suggests a private key, a certificate or
// message that may contain one, or a copy of such a file: server.pem, server.pem~,
// Copy of server.key.bak. To read the beginning of every file would take too long.
func MaybeKeyName(name string) bool {
	name = strings.ToLower(name)
	for i := range len(name) {
		if name[i] != '.' {
			continue
		}
		for _, ending := range keyEndings {
			if rest, ok := strings.CutPrefix(name[i:], ending); ok && (rest == "" || !isWordByte(rest[0])) {
				return true
			}
		}
	}
	if strings.HasSuffix(name, ".pub") {
		return false
	}
	for _, word := range keyWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

// isTemplateEnding reports whether end, the rest of a name after .env, says
// that the file only has examples of settings: example, sample, template, dist.
func isTemplateEnding(end string) bool {
	for _, word := range [...]string{"example", "sample", "template", "dist"} {
		if at := len(end) - len(word); at >= 0 && pathname.EqualFold(end[at:], word) && (at == 0 || end[at-1] == '.') {
			return true
		}
	}
	return false
}

// isWordByte reports whether c is an ASCII letter or digit, or part of a character
// beyond ASCII.
func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= utf8.RuneSelf
}
