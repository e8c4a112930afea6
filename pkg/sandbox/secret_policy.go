package sandbox

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// secretPolicy holds the user's exceptions to the rules of package secret.
type secretPolicy struct {
	allow []string // globs over slash paths
}

// secretPolicy returns the policy for the configuration.
func (s *Sandbox) secretPolicy() *secretPolicy {
	return &secretPolicy{allow: s.expandGlobs(s.config.AllowPaths)}
}

// Denied reports whether the file or directory at an absolute path is a secret by its
// name: a credential store or anything in it, a private key, a key store, Terraform
// state, a shell history. Tools list a secret with a mark and never read it. Denied is
// called for each entry of large trees; it allocates only if it returns true.
func (f *FS) Denied(abs string) bool {
	return (secret.IsPath(abs) || f.linked.isDenied(abs)) && !f.isAllowed(abs)
}

// DeniedIn reports whether the entry name of the directory dir, an absolute path, is
// denied, as Denied does for the joined path. dir itself must not be denied, as is true
// for every opened directory. It is faster: it does not check each component again.
func (f *FS) DeniedIn(dir, name string) bool {
	if f.linked.hasAny() {
		if path := filepath.Join(dir, name); f.linked.isDenied(path) {
			return !f.isAllowed(path)
		}
	}
	return secret.IsEntry(dir, name) && !f.isAllowed(filepath.Join(dir, name))
}

// Masked reports whether a readable file contains secret values by its name (.env,
// .env.*, .npmrc, ~/.m2/settings.xml). Tools show such a file after secret.Mask.
func (f *FS) Masked(abs string) bool {
	return (secret.IsSettingsPath(abs) || f.linked.isMasked(abs)) && !f.isAllowed(abs)
}

// MaskedFile reports whether Masked is true for another name of an open file, that is
// for another hard link.
func (f *FS) MaskedFile(path string, st Stat) bool {
	denied, ok := f.linked.lookupObject(st)
	return ok && !denied && !f.isAllowed(path)
}

// ExplicitlyAllowed reports whether --allow-path lifts the rules for a path:
// those about its name and those about its content.
func (f *FS) ExplicitlyAllowed(abs string) bool { return f.isAllowed(abs) }

// isAllowed reports whether --allow-path lifts the rules for a path.
func (f *FS) isAllowed(abs string) bool {
	return f.matchesAny(f.policy.allow, abs)
}
