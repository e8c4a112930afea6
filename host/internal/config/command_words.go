package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// commandWord is an argument of a command, or a word of shell text in an argument.
type commandWord struct {
	text  string
	shell bool // part of shell text
}

// commandWords returns the arguments of a command. For the shell text of sh -c and env
// -S it returns the words, without quotes and operators. A path there that begins with
// a variable or a command's output counts as relative, except for the home directory.
func commandWords(command []string) (words []commandWord) {
	for i, arg := range command {
		option, text := "", arg
		if i > 0 {
			option = command[i-1]
			for _, long := range []string{"--split-string=", "--command="} {
				if rest, ok := strings.CutPrefix(arg, long); ok {
					option, text = "-c", rest
				}
			}
			if rest, ok := strings.CutPrefix(arg, "-S"); ok && rest != "" {
				option, text = "-S", rest
			}
		}
		if !takesShellText(option) {
			words = append(words, commandWord{text: arg})
			continue
		}
		for _, word := range shellWords(text) {
			words = append(words, commandWord{word, true})
		}
	}
	return words
}

// takesShellText reports whether the argument after an option is shell text: -c, also
// combined with other letters (-ec), and -S of env.
func takesShellText(option string) bool {
	short := len(option) > 1 && option[0] == '-' && option[1] != '-'
	return short && (option[len(option)-1] == 'c' || option[len(option)-1] == 'S') || option == "--split-string" || option == "--command"
}

// shellWords splits shell text at blanks, quotes and operators.
func shellWords(text string) (words []string) {
	home, err := os.UserHomeDir()
	if err == nil {
		text = homeVariablePattern().ReplaceAllLiteralString(text, "~/")
	}
	text = pathVariablePattern().ReplaceAllString(text, "./")
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`{},=", r) }) {
		if rest, ok := strings.CutPrefix(word, "~/"); ok && err == nil {
			word = filepath.Join(home, rest)
		}
		words = append(words, word)
	}
	return words
}

var (
	// homeVariablePattern matches the home directory at the beginning of a path.
	homeVariablePattern = lazyregexp.New(`["']?\$(HOME|\{HOME\})["']?/`)
	// pathVariablePattern matches the beginning of a path that the shell computes: a
	// variable, or the output of a command.
	pathVariablePattern = lazyregexp.New("[\"']?(\\$\\([^()]*\\)|`[^`]*`|\\$\\{[^{}]*\\}|\\$\\w+)[\"']?/")
)

// maxNamedDirs bounds the directories in which files of a command are searched.
const maxNamedDirs = 16

// namedDirs returns dir and the directories that a command names, in dir or in each
// other. places are those that are arguments of an option or of cd, so that a program
// works in them.
func namedDirs(words []commandWord, dir string) (dirs, places []string) {
	dirs, places = []string{dir}, []string{dir}
	for i, word := range words[min(1, len(words)):] {
		name, ofOption := dirOfWord(words[i].text, word)
		if name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) {
			continue
		}
		for _, base := range slices.Clone(dirs) {
			named := joinUnlessAbs(base, name)
			info, err := os.Stat(named)
			if err != nil || !info.IsDir() || len(dirs) == maxNamedDirs {
				continue
			}
			if !slices.Contains(dirs, named) {
				dirs = append(dirs, named)
			}
			if ofOption && !slices.Contains(places, named) {
				places = append(places, named)
			}
		}
	}
	return dirs, places
}

// dirOfWord returns the directory that a word may name, and whether it is the argument
// of an option or of cd. before is the previous word. For a path with a variable or
// pattern it returns the directory part.
func dirOfWord(before string, word commandWord) (name string, ofOption bool) {
	name = word.text
	switch {
	case strings.HasPrefix(name, "--"):
		_, name, _ = strings.Cut(name, "=")
		return name, true
	case strings.HasPrefix(name, "-"):
		return name[min(2, len(name)):], true
	case word.shell && strings.ContainsAny(name, "$*?["):
		name = filepath.Dir(name)
	}
	return name, strings.HasPrefix(before, "-") || before == "cd" || before == "pushd"
}

// joinUnlessAbs returns path if it is absolute, else dir/path.
func joinUnlessAbs(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
