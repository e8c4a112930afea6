package writeguard

// UserGitSettings holds the user's git settings that may name paths in a root.
type UserGitSettings struct {
	Files      []string // absolute paths of the files that git reads as settings
	HooksPaths []string // values of core.hooksPath; a relative one applies to each work tree. Also directories whose hooks git copies
	// ExpandHome replaces the ~ or ~USER of a path. It returns several paths
	// if the home is ambiguous, nil for an unknown user.
	ExpandHome func(path string) []string
}

// UserGitSettingsOf returns the git settings of rules that have methods
// UserGitSettings and ExpandHome, as *sandbox.FS has, empty settings of others.
func UserGitSettingsOf(rules any) UserGitSettings {
	git := UserGitSettings{ExpandHome: func(path string) []string { return []string{path} }}
	if f, ok := rules.(interface {
		UserGitSettings() (files, hooksPaths []string)
		ExpandHome(path string) []string
	}); ok {
		git.Files, git.HooksPaths = f.UserGitSettings()
		git.ExpandHome = f.ExpandHome
	}
	return git
}
