package writeguard

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// withSourcedFiles adds to programs the existing files in the root that project
// settings of the user run or include by a literal path: .envrc by source, ., or
// source_env, Mercurial's hgrc by %include, hooks, extensions and aliases. A
// file that was one of them stays one while the settings name it, even if a
// command removed it. The result is sorted. A file with settings of its own name
// is left out, because it is watched already.
func (b *baseline) withSourcedFiles(root string, user UserGitSettings, programs []string) []string {
	seen := map[string]bool{}
	var add func(name, dir string, parse func(content []byte) (paths []string))
	add = func(name, dir string, parse func(content []byte) []string) {
		it, ok := b.Items[name]
		if !ok || seen[name] || len(it.Content) > maxIncludedBytes || !it.Mode.IsRegular() {
			return
		}
		seen[name] = true
		for _, path := range parse(it.Content) {
			for _, path := range user.expandHome(path) {
				for _, base := range []string{dir, filepath.Dir(name)} {
					path := joinIfRelative(root, base, path)
					for _, file := range appendIfInRoot(appendLinks(nil, root, path), root, path) {
						_, err := os.Lstat(filepath.Join(root, file))
						if isProjectSettingsName(filepath.Base(file)) || err != nil && !slices.Contains(b.Programs, file) {
							continue
						}
						programs = append(programs, file)
						add(file, dir, parse)
					}
				}
			}
		}
	}
	for name, it := range b.Items {
		if it.Spot != projectSettingsKind {
			continue
		}
		dir := filepath.Dir(name)
		switch parent := strings.ToLower(filepath.Base(dir)); strings.ToLower(filepath.Base(name)) {
		case ".envrc":
			add(name, dir, filesRunByEnvrc)
		case "hgrc", "hgrc-not-shared":
			if parent == ".hg" {
				add(name, filepath.Dir(dir), filesNamedInHgrc)
			}
		case "config":
			if parent == ".sl" {
				add(name, filepath.Dir(dir), filesNamedInHgrc)
			}
		}
	}
	slices.Sort(programs)
	return slices.Compact(programs)
}

// expandHome replaces the ~ of a path if ExpandHome is set.
func (u UserGitSettings) expandHome(path string) []string {
	if u.ExpandHome == nil {
		return []string{path}
	}
	return u.ExpandHome(path)
}

var (
	// sourceCommand matches a command of a shell script that runs another script
	// in the same shell, and that script's word.
	sourceCommand = regexp.MustCompile(`(?m)(?:^|[;&|({!]|\b(?:then|do|else|if))[ \t]*(?:source|\.|source_env|source_env_if_exists)[ \t]+((?:\$\([^()]*\)|"[^"]*"|'[^']*'|[^\s;&|()}"'])+)`)
	// currentDir matches the beginning of a path that the shell makes, mostly of
	// the current directory: $PWD/x, $(pwd)/x.
	currentDir = regexp.MustCompile(`^(\$\([^()]*\)|\$\{[^{}]*\}|\$\w+)/`)
)

// filesRunByEnvrc returns the paths of the scripts that a script of direnv runs in
// its shell. A beginning with a variable counts as the current directory. The
// script activate of a virtual environment is left out: commands can write the
// programs beside it.
func filesRunByEnvrc(script []byte) (paths []string) {
	for _, match := range sourceCommand.FindAllSubmatch(script, -1) {
		path := strings.NewReplacer(`"`, "", `'`, "").Replace(string(match[1]))
		for _, home := range []string{"$HOME/", "${HOME}/"} {
			if rest, ok := strings.CutPrefix(path, home); ok {
				path = "~/" + rest
			}
		}
		path = currentDir.ReplaceAllString(path, "./")
		if strings.ContainsAny(path, "$`*?[") || filepath.Base(path) == "activate" && filepath.Base(filepath.Dir(path)) == "bin" {
			continue
		}
		paths = append(paths, filepath.FromSlash(path))
	}
	return paths
}

// filesNamedInHgrc returns the paths of the files that an hgrc includes, and
// those that its hooks, extensions and aliases name.
func filesNamedInHgrc(hgrc []byte) (paths []string) {
	section := ""
	for line := range strings.Lines(string(hgrc)) {
		line = strings.TrimSpace(line)
		if path, ok := strings.CutPrefix(line, "%include"); ok {
			paths = append(paths, filepath.FromSlash(strings.TrimSpace(path)))
			continue
		}
		if strings.HasPrefix(line, "[") {
			section, _, _ = strings.Cut(line[1:], "]")
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok || !slices.Contains([]string{"hooks", "extensions", "alias"}, section) {
			continue
		}
		value = strings.TrimSpace(value)
		if module, ok := strings.CutPrefix(value, "python:"); ok {
			value, _, _ = strings.Cut(module, ":")
		}
		paths = append(paths, gitfile.ProgramPaths([]string{strings.TrimSpace(key) + "=" + value})...)
	}
	return paths
}
