package config

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/host/trust"
)

// Names that programs add to what a command says, or look for in its
// directory.
var (
	// impliedEndings follow a script's name that is given without one.
	impliedEndings = []string{".js", ".mjs", ".cjs", ".ts", ".py"}
	// impliedEntries are what is run of a directory.
	impliedEntries = []string{"__init__.py", "__main__.py", "index.js", "index.ts", "package.json"}
	// impliedFiles say what the program does in its directory.
	impliedFiles = map[string][]string{
		"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"}, "just": {"justfile", "Justfile", ".justfile"},
		"npm": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json"}, "bun run": {"package.json"},
		"task": {"Taskfile.yml", "Taskfile.yaml"}, "deno task": {"deno.json", "deno.jsonc"}, "rake": {"Rakefile", "rakefile"},
	}
)

// implied returns the files that a command runs by the conventions of
// well-known programs without naming them: python -m NAME, node NAME or a
// directory, make, npm run, words of sh -c, -fFILE. Files that would be
// preferred are among them although they do not exist. dir is where the
// command runs.
func implied(command []string, dir string) (paths []string) {
	if len(command) == 0 {
		return nil
	}
	add := func(path string) {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	makes := strings.HasSuffix(filepath.Base(command[0]), "make")
	for i, arg := range command {
		program := strings.TrimSuffix(filepath.Base(arg), ".exe")
		if i == 0 || !strings.ContainsAny(arg, " /") {
			names := impliedFiles[program]
			if i+1 < len(command) {
				names = append(slices.Clip(names), impliedFiles[program+" "+command[i+1]]...)
			}
			for _, name := range names {
				add(name)
			}
		}
		if i == 0 || arg == "" || len(arg) > 4096 || strings.ContainsRune(arg, 0) || strings.Contains(arg, "://") {
			continue
		}
		switch {
		case command[i-1] == "-m":
			for _, path := range entries(filepath.Join(dir, strings.ReplaceAll(arg, ".", "/")), true) {
				add(path)
			}
		case command[i-1] == "-c" || strings.HasPrefix(command[i-1], "-") && strings.HasSuffix(command[i-1], "c"):
			for _, word := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`{}=", r) }) {
				if isCode(dir, word) {
					add(word)
				}
			}
		case strings.HasPrefix(arg, "-"):
			if _, value, ok := strings.Cut(arg, "="); ok && (isCode(dir, value) || makes && strings.HasPrefix(arg, "--")) {
				add(value)
			} else if len(arg) > 2 && arg[1] != '-' && (isCode(dir, arg[2:]) || makes && arg[1] == 'f') {
				add(arg[2:])
			}
		default:
			path := arg
			if !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			for _, path := range entries(path, false) {
				add(path)
			}
		}
	}
	return paths
}

// entries returns what a program runs that is given path as a directory or
// without the ending. Where nothing is there, a module has all the names that
// could be.
func entries(path string, module bool) (paths []string) {
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

// isCode reports whether a word of a command, in dir, names a file that is run.
func isCode(dir, word string) bool {
	if !filepath.IsAbs(word) {
		word = filepath.Join(dir, word)
	}
	return isFile(word) && trust.IsCode(word)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeType == 0
}
