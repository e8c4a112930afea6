package writeguard

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy/shellpaths"
)

// withSourcedFiles adds to programs the existing files in the root that project
// settings of the user run or include by a literal path: .envrc, and Mercurial's hgrc
// by %include, extensions and commands. A file that was one of them stays one while the
// settings name it, even if a command removed it. The result is sorted. A file with
// settings of its own name is left out, because it is watched already.
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

// expandHome returns the absolute paths that path can mean: those of ExpandHome
// if that is set, else path itself.
func (u UserGitSettings) expandHome(path string) []string {
	if u.ExpandHome == nil {
		return []string{path}
	}
	return u.ExpandHome(path)
}

var (
	// sourceCommand matches a command of a shell script that runs another script
	// in the same shell, and that script's word.
	sourceCommand = lazyregexp.New(`(?m)(?:^|[;&|({!]|\b(?:then|do|else|if))[ \t]*(?:source|\.|source_env|source_env_if_exists)[ \t]+((?:\$\([^()]*\)|"[^"]*"|'[^']*'|[^\s;&|()}"'])+)`)
	// currentDir matches the beginning of a path that the shell makes, mostly of
	// the current directory: $PWD/x, $(pwd)/x.
	currentDir = lazyregexp.New(`^(\$\([^()]*\)|\$\{[^{}]*\}|\$\w+)/`)
)

// filesRunByEnvrc returns the paths of the scripts and programs that a script of
// direnv runs, also those in the directories that it adds to PATH. A beginning
// with a variable counts as the current directory. The files of package managers,
// and the script activate and the programs of a virtual environment are left out:
// commands install them.
func filesRunByEnvrc(script []byte) (paths []string) {
	found := shellpaths.OfScript(string(script))
	for _, path := range slices.Concat(found.Scripts, found.Programs, sourcedPaths(script)) {
		inBin := filepath.Base(filepath.Dir(path)) == "bin"
		if strings.ContainsAny(path, "*?[") || isOfPackageManager(path) || inBin && (filepath.Base(path) == "activate" || HasComponent(path, ".venv") || HasComponent(path, "venv")) {
			continue
		}
		paths = append(paths, filepath.FromSlash(path))
	}
	return paths
}

// sourcedPaths returns the paths of the scripts that a script sources by a simple
// command. It also works for a script that shellpaths cannot parse.
func sourcedPaths(script []byte) (paths []string) {
	for _, match := range sourceCommand().FindAllSubmatch(script, -1) {
		path := strings.NewReplacer(`"`, "", `'`, "").Replace(string(match[1]))
		for _, home := range []string{"$HOME/", "${HOME}/"} {
			if rest, ok := strings.CutPrefix(path, home); ok {
				path = "~/" + rest
			}
		}
		if path = currentDir().ReplaceAllString(path, "./"); !strings.ContainsAny(path, "$`") {
			paths = append(paths, path)
		}
	}
	return paths
}

// programSections are the sections of an hgrc whose values are commands or
// extensions, and programKeys such keys of the section ui.
var (
	programSections = []string{"hooks", "extensions", "alias", "encode", "decode", "pager", "extdiff", "merge-tools", "fix"}
	programKeys     = []string{"editor", "ssh", "merge"}
)

// filesNamedInHgrc returns the paths of the files that an hgrc includes, and
// those that its commands and extensions name.
func filesNamedInHgrc(hgrc []byte) (paths []string) {
	section := ""
	for line := range strings.Lines(continuation().ReplaceAllString(string(hgrc), " ")) {
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
		key, value = strings.TrimSpace(key), strings.TrimSpace(value)
		if !ok || !slices.Contains(programSections, section) && (section != "ui" || !slices.Contains(programKeys, key)) {
			continue
		}
		if module, ok := strings.CutPrefix(value, "python:"); ok {
			value, _, _ = strings.Cut(module, ":")
		}
		paths = append(paths, gitfile.ProgramPaths([]string{key + "=" + value})...)
		found := shellpaths.Of(strings.TrimPrefix(strings.TrimPrefix(value, "pipe:"), "!"))
		for _, path := range slices.Concat(found.Scripts, found.Programs) {
			paths = append(paths, filepath.FromSlash(path))
		}
	}
	return paths
}

// continuation matches the line end before a line of an hgrc that continues a value.
var continuation = lazyregexp.New(`\n[ \t]+`)
