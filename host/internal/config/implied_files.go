package config

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
)

// Names that programs add to an argument, or look for in their directory.
var (
	// impliedEndings are added to a script's name without an ending.
	impliedEndings = []string{".js", ".mjs", ".cjs", ".ts", ".py"}
	// impliedEntries are run if an argument is a directory.
	impliedEntries = []string{"__init__.py", "__main__.py", "index.js", "index.ts", "package.json"}
	// impliedFiles lists files that control a program in its directory.
	impliedFiles = map[string][]string{
		"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"}, "just": {"justfile", "Justfile", ".justfile"},
		"npm": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json"}, "bun run": {"package.json"},
		"task": {"Taskfile.yml", "Taskfile.yaml"}, "deno task": {"deno.json", "deno.jsonc"}, "rake": {"Rakefile", "rakefile"},
	}
)

// filesOfCommand returns the files that a command runs by the conventions of well-known
// programs without naming them: python -m NAME, node NAME or a directory, make, npm
// run, words of sh -c and env -S, -fFILE. It searches dir, where the command runs, and
// the directories that the command names: cd DIR, -C DIR, --prefix=DIR. It includes
// missing files that the program would prefer.
func filesOfCommand(command []string, dir string) (paths []string) {
	words := commandWords(command)
	dirs, places := namedDirs(words, dir)
	add := func(found ...string) {
		for _, path := range found {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	for i, word := range words {
		for _, name := range filesOfProgram(words, i) {
			for _, place := range places {
				add(filepath.Join(place, name))
			}
		}
		if i == 0 || word.text == "" || len(word.text) > 4096 || strings.ContainsRune(word.text, 0) || strings.Contains(word.text, "://") {
			continue
		}
		for _, dir := range dirs {
			add(filesOfWord(words, i, dir)...)
		}
	}
	return paths
}

// filesOfProgram returns the names of the files that control a program in its
// directory, if the word i is the name of a program.
func filesOfProgram(words []commandWord, i int) (names []string) {
	if i > 0 && strings.Contains(words[i].text, "/") {
		return nil
	}
	program := strings.TrimSuffix(filepath.Base(words[i].text), ".exe")
	names = impliedFiles[program]
	if i+1 < len(words) {
		names = append(slices.Clip(names), impliedFiles[program+" "+words[i+1].text]...)
	}
	return names
}

// filesOfWord returns the files in dir that run or control a run because of the
// argument i.
func filesOfWord(words []commandWord, i int, dir string) (paths []string) {
	word, makes := words[i].text, strings.HasSuffix(filepath.Base(words[0].text), "make")
	switch {
	case words[i-1].text == "-m":
		return moduleFiles(filepath.Join(dir, strings.ReplaceAll(word, ".", "/")), true)
	case strings.HasPrefix(word, "-"):
		if _, value, ok := strings.Cut(word, "="); ok && (isCode(dir, value) || makes && strings.HasPrefix(word, "--")) {
			paths = append(paths, joinUnlessAbs(dir, value))
		} else if len(word) > 2 && word[1] != '-' && (isCode(dir, word[2:]) || makes && word[1] == 'f') {
			paths = append(paths, joinUnlessAbs(dir, word[2:]))
		}
	case words[i].shell && strings.ContainsAny(word, "*?["):
		paths, _ = filepath.Glob(joinUnlessAbs(dir, word)) //nolint:errcheck // a malformed pattern matches nothing
		paths = slices.DeleteFunc(paths, func(path string) bool { return !isCode("", path) })
	case isCode(dir, word):
		paths = append(paths, joinUnlessAbs(dir, word))
	default:
		paths = moduleFiles(joinUnlessAbs(dir, word), false)
	}
	return paths
}

// moduleFiles returns the files that a program may run for a path that is a directory or lacks the
// ending, existing or not. If none exists, it returns nil, unless the path is the name of a
// module.
func moduleFiles(path string, module bool) (paths []string) {
	if isFile(path) {
		return nil
	}
	found := module
	for _, ending := range impliedEndings {
		paths = append(paths, path+ending)
		found = found || isFile(path+ending)
	}
	for _, name := range impliedEntries {
		entry := filepath.Join(path, name)
		paths = append(paths, entry)
		found = found || isFile(entry)
	}
	if !found {
		return nil
	}
	var manifest struct{ Main string }
	if raw, err := os.ReadFile(filepath.Join(path, "package.json")); err == nil && json.Unmarshal(raw, &manifest) == nil && filepath.IsLocal(manifest.Main) {
		paths = append(paths, filepath.Join(path, manifest.Main))
	}
	return paths
}

// isCode reports whether a word of a command, in dir, names a file that runs.
func isCode(dir, word string) bool {
	word = joinUnlessAbs(dir, word)
	return isFile(word) && trust.IsCode(word)
}

// isFile reports whether a path is a regular file, through links.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeType == 0
}
