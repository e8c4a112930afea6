package walk

import (
	"path/filepath"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// projectFiles are files that build tools, package managers and code hosts read
// at the top of a project.
var projectFiles = []string{
	"package.json", "go.mod", "go.work", "Cargo.toml", "pyproject.toml", "setup.py", "requirements.txt", "Pipfile", "pom.xml", "build.gradle",
	"build.gradle.kts", "settings.gradle", "settings.gradle.kts", "build.sbt", "Gemfile", "composer.json", "mix.exs", "rebar.config", "deno.json",
	"deno.jsonc", "tsconfig.json", "pubspec.yaml", "Package.swift", "CMakeLists.txt", "Makefile", "makefile", "GNUmakefile", "meson.build", "configure.ac",
	"project.clj", "deps.edn", "stack.yaml", "cabal.project", "dune-project", "build.zig", "flake.nix", "MODULE.bazel", "WORKSPACE", "DESCRIPTION",
	"Project.toml", "global.json", "Directory.Build.props", "Dockerfile", ".gitattributes", ".gitmodules", ".github", ".gitlab-ci.yml", ".editorconfig",
}

// isProjectTop reports whether a directory outside any repository is the top of
// a project, so that its .gitignore applies: a copy or an archive of a
// repository has everything except .git. A .gitignore without a project file
// may have another purpose, and a .gitignore above the root is not the user's
// choice.
func (t *tree) isProjectTop(src ruleDir) bool {
	rel, err := filepath.Rel(t.topRoot, src.abs())
	if err != nil || rel != "." && !filepath.IsLocal(rel) || !src.hasRuleFile(".gitignore") {
		return false
	}
	for _, name := range projectFiles {
		if src.exists(name) {
			return true
		}
	}
	return false
}

// outermostRoot returns the outermost root that contains dir, or dir if none
// does.
func outermostRoot(roots []sandbox.Root, dir string) string {
	top := dir
	for _, root := range roots {
		if rel, err := filepath.Rel(root.Path, top); err == nil && filepath.IsLocal(rel) {
			top = root.Path
		}
	}
	return top
}
