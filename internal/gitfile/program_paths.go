package gitfile

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// ProgramPaths returns the words of settings, in the form of DangerousSettings,
// that may be the path of a program that git runs: all words of a command line,
// without quotes, sorted. A relative path is relative to the top of the work
// tree. A path that begins with a variable or with the output of a command counts as
// relative ($PWD/x, $(git rev-parse --show-toplevel)/x), and a relative path counts
// below each directory of a cd, too. The value of an option of one letter may follow
// it without a blank (-Fx/y), and -m names the modules of a Python program. Other
// words of options and with variables, and names without a slash or dot are left
// out, and for a command of git itself all names without a slash.
func ProgramPaths(settings []string) (paths []string) {
	for _, setting := range settings {
		key, value, _ := strings.Cut(setting, "=")
		if strings.HasPrefix(key, "include") || strings.HasSuffix(key, ".url") || slices.Contains([]string{"core.hookspath", "core.worktree", "core.attributesfile", "init.templatedir"}, key) {
			continue
		}
		value = homeVariable().ReplaceAllString(value, "~/")
		value = outputOrVariable().ReplaceAllString(value, "./")
		words := strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(" \t\r\n'\"!;&|()<>`=", r) })
		marks := "/."
		if len(words) > 0 && words[0] == "git" {
			marks = "/" // its arguments are mostly files and branches
		}
		dirs := []string{""}
		for i, word := range words {
			if i > 0 && words[i-1] == "cd" {
				dirs = append(dirs, word)
			}
			if i > 0 && words[i-1] == "-m" && pythonModule().MatchString(word) {
				paths = append(paths, moduleFiles(word)...)
			}
			if word[0] == '-' {
				if word = shortOption().ReplaceAllString(word, ""); !strings.Contains(word, "/") || word[0] == '-' {
					continue
				}
			}
			if !strings.ContainsAny(word, marks) || strings.ContainsAny(word, "$*?:") {
				continue
			}
			paths = append(paths, filepath.FromSlash(word))
			for _, dir := range dirs[1:] {
				if !strings.HasPrefix(word, "/") && !strings.HasPrefix(word, "~") && dir != word {
					paths = append(paths, filepath.FromSlash(path.Join(dir, word)))
				}
			}
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// homeVariable matches $HOME/ in a command line.
var homeVariable = lazyregexp.New(`\$(HOME|\{HOME\})["']?/`)

// outputOrVariable matches the beginning of a path that the shell makes: a
// variable, or the output of a command.
var outputOrVariable = lazyregexp.New("(\\$\\([^()]*\\)|`[^`]*`|\\$\\{[^{}]*\\}|\\$\\w+)[\"']?/")

var (
	// shortOption matches the beginning of an option of one letter.
	shortOption = lazyregexp.New(`^-[A-Za-z]`)
	// pythonModule matches the dotted name of a Python module.
	pythonModule = lazyregexp.New(`^\w+(\.\w+)*$`)
)

// moduleFiles returns the files that Python may run for the option -m: the files of the
// module, and of the packages that it is in.
func moduleFiles(module string) (paths []string) {
	dir := ""
	for _, name := range strings.Split(module, ".") {
		dir = path.Join(dir, name)
		paths = append(paths, filepath.FromSlash(dir+"/__init__.py"))
	}
	return append(paths, filepath.FromSlash(dir+".py"), filepath.FromSlash(dir+"/__main__.py"))
}
