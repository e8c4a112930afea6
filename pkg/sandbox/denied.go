package sandbox

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// secretPolicy holds the user's exceptions from the rules of package secret.
type secretPolicy struct {
	allow []string // globs over slash paths
}

func (s *Sandbox) secretPolicy() *secretPolicy {
	return &secretPolicy{allow: s.expandGlobs(s.config.AllowPaths)}
}

// Denied reports by its name whether the file or directory at an absolute
// path is a secret, which is listed with a mark and never read: credential
// stores with all they hold, private keys, key stores, Terraform state, shell
// histories. It is called for each entry of large trees and allocates
// nothing unless the answer is yes.
func (f *FS) Denied(abs string) bool {
	return (secret.IsPath(abs) || f.linked.isDenied(abs)) && !f.isAllowed(abs)
}

// DeniedIn is Denied for the entry name of a directory that is not denied
// itself, as any that was opened; dir is its absolute path. It spares a walk
// the joining and the looking at each path once more.
func (f *FS) DeniedIn(dir, name string) bool {
	if f.linked.hasAny() {
		if path := filepath.Join(dir, name); f.linked.isDenied(path) {
			return !f.isAllowed(path)
		}
	}
	return secret.IsEntry(dir, name) && !f.isAllowed(filepath.Join(dir, name))
}

// Masked reports by its name whether a readable file holds secrets as values
// (.env, .env.*, .npmrc), which are shown as secret.Mask leaves them.
func (f *FS) Masked(abs string) bool {
	return (secret.IsSettings(pathname.Base(abs)) || f.linked.isMasked(abs)) && !f.isAllowed(abs)
}

// MaskedFile reports whether an open file is one that Masked holds for by
// another of its names, that is a hard link.
func (f *FS) MaskedFile(path string, st Stat) bool {
	denied, ok := f.linked.lookupObject(st)
	return ok && !denied && !f.isAllowed(path)
}

// ExplicitlyAllowed reports whether --allow-path lifts the rules for a path, also those
// that go by content.
func (f *FS) ExplicitlyAllowed(abs string) bool { return f.isAllowed(abs) }

// isAllowed reports whether --allow-path lifts the rules for a path.
func (f *FS) isAllowed(abs string) bool {
	return f.matchesAny(f.policy.allow, abs)
}
