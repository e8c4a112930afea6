package writeguard

// UserGit holds the user's git settings that may name paths in a root.
type UserGit struct {
	Files      []string // files that git reads as settings; absolute
	HooksPaths []string // values of core.hooksPath; a relative one applies to each work tree

	// Expand replaces the ~ or ~USER of a path. It returns nil for an unknown
	// user.
	Expand func(path string) []string
}

// UserGitOf returns the git settings of rules that implement UserGitSettings
// and ExpandHome, empty ones for others.
func UserGitOf(rules any) UserGit {
	git := UserGit{Expand: func(path string) []string { return []string{path} }}
	if f, ok := rules.(interface {
		UserGitSettings() (files, hooksPaths []string)
		ExpandHome(path string) []string
	}); ok {
		git.Files, git.HooksPaths = f.UserGitSettings()
		git.Expand = f.ExpandHome
	}
	return git
}
