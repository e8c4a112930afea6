package policy

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// This file tells code of other languages that starts no program from code
// that may. It goes by the words of the code, whatever stands around them, so
// that it needs no grammar: a program that is started by none of these words
// is not found, no more than one that a script file starts.

// starterParts are parts of words, in lower case, of which code in any language
// needs one to start a program or to run text.
var starterParts = strings.Fields(`system exec eval spawn popen fork subprocess child_process shell getoutput ctypes cffi importlib
	import_module getattr globals builtins breakpoint multiprocessing rmtree unlink syscall passthru proc_open pcntl create_function
	call_user_func dlopen dlfcn mainmodule getbuiltinmodule constructor binding load_extension`)

// starterWords are whole words that start programs or run text, by language; ""
// for all languages.
var starterWords = map[string][]string{
	"":        strings.Fields("pty Function run"),
	"python":  strings.Fields("modules vars locals pickle marshal shelve dill joblib runpy code codeop pdb bdb timeit inspect operator gc commands pydoc pip distutils setuptools compile attrgetter methodcaller unsafe_load UnsafeLoader coding webbrowser"),
	"perl":    strings.Fields("qx readpipe do require can use no CORE DB"),
	"ruby":    strings.Fields("send __send__ public_send method load require require_relative const_get IO PTY Process Open3 trap at_exit instance_variable_get ObjectSpace"),
	"node":    strings.Fields("import vm worker_threads cluster repl inspector Reflect"),
	"php":     strings.Fields("include include_once require require_once assert mail dl ReflectionFunction"),
	"lua":     strings.Fields("load loadstring dofile loadfile require package debug"),
	"julia":   strings.Fields("include pipeline Cmd cmd_str Meta ccall"),
	"sqlite3": strings.Fields("read load edit once output import excel cd archive log"),
	"psql":    strings.Fields("program"),
	"mysql":   strings.Fields("source pager tee edit outfile"),
}

// starterPatterns match operators that start programs, by language.
var starterPatterns = map[string]func() *regexp.Regexp{
	// A pipe in open, <`x`>, and the modifier ee.
	"perl":  lazyregexp.New("`|[Oo][Pp][Ee][Nn]|[^\\w\\s][a-z]*e[a-z]*e[a-z]*\\s*([;})]|$)|&\\s*[{$]|->\\s*[$&]"),
	"ruby":  lazyregexp.New("`|%x|\\bopen\\b|<<~?-?`"),
	"php":   lazyregexp.New("`|\\$\\w+\\s*\\(|\\]\\s*\\("),
	"julia": lazyregexp.New("`"),
	"node":  lazyregexp.New(`(process|global|globalThis|this|require|module)\s*\[|\[\s*["'][^"']*["']\s*\+|\\[ux]`),
	"psql":  lazyregexp.New(`\\[^dlxtaq]`),
	"mysql": lazyregexp.New(`\\[^Gg]`),
}

// harmlessDunders are the names between double underscores that only tell
// something.
var harmlessDunders = strings.Fields("__version__ __name__ __file__ __doc__ __main__ __len__")

// wordPattern matches a word of code.
var wordPattern = lazyregexp.New(`[A-Za-z0-9_]+`)

// nodeRequire matches require of a harmless module of Node, or of a JSON file.
var nodeRequire = lazyregexp.New(`require\s*\(\s*["']((node:)?(fs|fs/promises|path|os|util|url|crypto|assert|zlib|events|buffer|querystring)|\.{1,2}/[\w./-]+\.json)["']\s*\)`)

// isHarmlessCode reports whether code of a language almost surely starts no
// program and runs no other text. It returns false for unknown languages,
// unknown parts and long code.
func isHarmlessCode(language, code string) bool {
	if len(code) > maxForeignCode || strings.Contains(code, unknownText) || strings.ContainsFunc(code, isLookalikeLetter) {
		return false
	}
	switch language {
	case "gdb":
		return isHarmlessDebuggerCode(code)
	case "vim":
		return isHarmlessEditorCode(code)
	case "python", "perl", "ruby", "node", "php", "lua", "julia", "sqlite3", "psql", "mysql":
	default:
		return false
	}
	if language == "node" {
		code = nodeRequire().ReplaceAllString(code, "")
		if strings.Contains(code, "require") {
			return false
		}
	}
	if sign := starterPatterns[language]; sign != nil && sign().MatchString(code) {
		return false
	}
	for _, word := range wordPattern().FindAllString(code, -1) {
		lower := strings.ToLower(word)
		switch {
		case slices.ContainsFunc(starterParts, func(part string) bool { return strings.Contains(lower, part) }),
			slices.Contains(starterWords[""], word), slices.Contains(starterWords[language], word),
			strings.HasPrefix(word, "__") && !slices.Contains(harmlessDunders, word):
			// re.compile makes a pattern only.
			if word != "compile" || strings.Count(code, "compile") != strings.Count(code, "re.compile(") {
				return false
			}
		}
	}
	return true
}

// isLookalikeLetter reports whether a character may be another spelling of an
// ASCII letter, for languages that normalize names.
func isLookalikeLetter(r rune) bool {
	return r > unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) && (r > 0xff || r == 0xaa || r == 0xba)
}

// isHarmlessDebuggerCode reports whether a command of gdb only inspects the
// debugged program, or lets it run.
func isHarmlessDebuggerCode(code string) bool {
	words := strings.Fields(code)
	if len(words) == 0 {
		return true
	}
	verb, _, _ := strings.Cut(words[0], "/")
	return slices.Contains(strings.Fields(`bt backtrace where run r start info i print p x b break tbreak c continue n next s step finish
		up down frame f thread t list l q quit kill disassemble disas catch watch`), verb) && !strings.ContainsAny(code, "|!`$(")
}

// isHarmlessEditorCode reports whether commands of vi only set options, write
// and quit.
func isHarmlessEditorCode(code string) bool {
	for _, command := range strings.Split(code, "|") {
		words := strings.Fields(strings.TrimLeft(command, ": "))
		if len(words) == 0 {
			continue
		}
		verb := strings.TrimSuffix(words[0], "!")
		if strings.ContainsAny(strings.Join(words[1:], " ")+verb, "!`=") || !slices.Contains(strings.Fields(`set se q qa qall w wa wq wqa x xa
			e edit syntax colorscheme nohlsearch noh number split vsplit sp vs tabnew`), verb) {
			return false
		}
	}
	return true
}
