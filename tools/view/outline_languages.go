package main

import (
	"regexp"
	"strings"
	"sync"
)

// endRule says how to find the last line of a symbol.
type endRule int

const (
	byBraces endRule = iota // at the closing brace
	byIndent                // before the next line with the same or less indentation
	byEnd                   // at "end" with the symbol's indentation
	byNext                  // before the next symbol
)

// language describes how to find symbols, line by line.
type language struct {
	end      endRule
	comments string                  // prefixes of line comments, separated by spaces
	strings  string                  // kind of strings: "`" can span lines; "py": triple quotes can; "rust": 'a is not a string
	rules    func() []*regexp.Regexp // regular expressions with a group "name" and optionally a group "kind"
}

// compileOnce returns a function that compiles the patterns on first use, so
// that starting the tool takes no longer.
func compileOnce(patterns ...string) func() []*regexp.Regexp {
	return sync.OnceValue(func() []*regexp.Regexp {
		rules := make([]*regexp.Regexp, len(patterns))
		for i, pattern := range patterns {
			rules[i] = regexp.MustCompile(pattern)
		}
		return rules
	})
}

// modifiersPattern returns a pattern for any number of modifiers before a
// declaration. list has the modifiers, separated by spaces.
func modifiersPattern(list string) string {
	return `(?:(?:` + strings.ReplaceAll(list, " ", "|") + `)\s+)*`
}

// jvmModifiers are modifiers of Java, Kotlin, C#, Scala, Groovy and Dart, for
// modifiersPattern.
const jvmModifiers = "public private protected internal static final abstract sealed non-sealed open override inline data inner value annotation enum companion suspend operator infix tailrec external const lateinit actual expect synchronized native strictfp default partial readonly async unsafe virtual extern new ref file required case implicit lazy"

// languages returns the languages by file name extension.
var languages = sync.OnceValue(func() map[string]*language {
	cLike := func(rules ...string) *language {
		return &language{end: byBraces, comments: "// /* *", rules: compileOnce(rules...)}
	}
	javascript := cLike(
		`^\s*(?:export\s+)?(?:default\s+)?`+modifiersPattern("declare abstract async")+`(?P<kind>function|class|interface|enum|namespace|module|type)\b\s*\*?\s*(?P<name>[\w$.]+)`,
		`^(?:export\s+)?(?:const|let|var)\s+(?P<name>[\w$]+)\s*(?::[^=]+)?=`,
		`^\s+`+modifiersPattern("public private protected static async get set readonly override abstract")+`\*?(?P<name>#?[\w$]+)\s*(?:<[^>]*>)?\([^;]*\)\s*(?::[^{;]+)?\{\s*$`,
		`^\s*(?:module\.)?exports(?:\.(?P<name>[\w$]+))?\s*=`,
	)
	javascript.strings = "`"
	jvm := cLike(
		`^\s*(?:@\w+(?:\([^)]*\))?\s+)*`+modifiersPattern(jvmModifiers)+`(?P<kind>class|interface|enum|record|object|trait|struct|namespace|@interface|delegate)\s+(?P<name>[\w.]+)`,
		`^\s*(?:@\w+(?:\([^)]*\))?\s+)*`+modifiersPattern(jvmModifiers)+`(?P<kind>fun|def)\s+(?:<[^>]*>\s*)?(?P<name>[\w.<>]+)`,
		`^\s+(?:@\w+(?:\([^)]*\))?\s+)*`+modifiersPattern(jvmModifiers)+`(?:<[^>]*>\s*)?(?:[\w.]+(?:<[^()]*>)?[\[\]?]*\s+)?(?P<name>\w+)\s*(?:<[^>]*>)?\([^;]*$`,
	)
	c := cLike(
		`^\s*(?:template\s*<[^>]*>\s*)?(?:typedef\s+)?(?P<kind>struct|class|union|enum(?:\s+class|\s+struct)?|namespace)\s+(?:\[\[[^\]]*\]\]\s*)?(?P<name>[\w:]+)[^;()]*$`,
		`^(?:template\s*<[^>]*>\s*)?(?:[\w:~<>,]+[\s*&]+)*(?P<name>[\w:~]+(?:operator\s*\S{1,3})?)\s*\([^;]*$`,
		`^\s*#\s*(?P<kind>define)\s+(?P<name>\w+)`,
	)
	ruby := &language{end: byEnd, comments: "#", rules: compileOnce(
		`^\s*(?P<kind>class|module|def|defmodule|defp|defmacro|function|local\s+function)\s+(?P<name>[\w.:?!=<>\[\]+*/%~^&|-]+)`,
	)}
	shell := &language{end: byBraces, comments: "#", rules: compileOnce(
		`^\s*(?:function\s+)?(?P<name>[\w:.+-]+)\s*\(\s*\)`, `^\s*(?P<kind>function)\s+(?P<name>[\w:.+-]+)`,
	)}
	yaml := &language{end: byIndent, comments: "#", rules: compileOnce(`^(?P<name>[\w."'/$<*][^:#]*?)\s*:(?:\s|$)`)}
	toml := &language{end: byNext, comments: "# ;", rules: compileOnce(`^\s*\[+\s*(?P<name>[^\]]+?)\s*\]+`)}
	table := map[string]*language{
		".go": cLike(`^(?P<kind>func)\s+(?:\([^)]*\)\s*)?(?P<name>\w+)`, `^(?P<kind>type|var|const)\s+(?P<name>\w+)`),
		".rs": cLike(
			`^\s*(?:pub(?:\([^)]*\))?\s+)?(?:extern\s+"[^"]*"\s+)?`+modifiersPattern("default const async unsafe auto")+`(?P<kind>fn|struct|enum|trait|union|mod|type|static|const|macro_rules!)\s+(?:mut\s+)?(?P<name>\w+)`,
			`^\s*(?:unsafe\s+)?(?P<kind>impl)\b\s*(?:<[^{]*?>\s+)?(?P<name>[^{]*[^{\s])`,
		),
		".swift": cLike(
			`^\s*(?:@\w+(?:\([^)]*\))?\s+)*`+modifiersPattern("public private fileprivate internal open final static class override mutating indirect convenience required nonisolated")+
				`(?P<kind>class|struct|enum|protocol|extension|actor|func|typealias)\s+(?P<name>[\w.+\-*/=<>!&|^~%]+)`,
			`^\s+`+modifiersPattern("public private internal convenience required override")+`(?P<name>init|deinit)\b`,
		),
		".php": cLike(`^\s*` + modifiersPattern("public private protected static final abstract readonly") + `(?P<kind>function|class|interface|trait|enum|namespace)\s+&?(?P<name>[\w\\]+)`),
		".py": {end: byIndent, comments: "#", strings: "py", rules: compileOnce(
			`^\s*(?:async\s+)?(?P<kind>def|class)\s+(?P<name>\w+)`,
			`^(?P<name>[A-Z_][A-Z0-9_]+)\s*(?::[^=]+)?=[^=]`,
		)},
		".pl":    cLike(`^\s*(?P<kind>sub|package)\s+(?P<name>[\w:]+)`),
		".proto": cLike(`^\s*(?P<kind>message|service|enum|rpc)\s+(?P<name>\w+)`),
		".sql": {end: byNext, comments: "--", rules: compileOnce(
			`(?i)^\s*create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+|unique\s+)?(?P<kind>table|view|index|function|procedure|trigger|type|schema)\s+(?:if\s+not\s+exists\s+)?(?P<name>[\w."]+)`)},
		".mk":  {end: byNext, comments: "#", rules: compileOnce(`^(?P<name>[\w.%/$(){}-][^:=#]*?)\s*::?(?:[^=]|$)`)},
		".css": cLike(`^(?P<name>[@.#\w*:\[][^{};]*?)\s*\{`),
		".tf":  cLike(`^(?P<kind>resource|data|module|variable|output|provider|locals|terraform)\b\s*(?P<name>[^{]*?)\s*\{`),
	}
	add := func(l *language, extensions string) {
		for _, ext := range strings.Fields(extensions) {
			table[ext] = l
		}
	}
	add(javascript, ".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte")
	add(jvm, ".java .kt .kts .cs .scala .groovy .dart")
	add(c, ".c .h .cc .cpp .cxx .hh .hpp .hxx .ino .cu .m .mm")
	add(ruby, ".rb .rake .ex .exs .lua .jl")
	add(shell, ".sh .bash .zsh .ksh")
	add(yaml, ".yaml .yml")
	add(toml, ".toml .ini .cfg .conf")
	table[".rs"].strings = "rust"
	table[".go"].strings = "`"
	add(table[".py"], ".pyi .pyw")
	add(table[".pl"], ".pm")
	add(table[".css"], ".scss .less")
	return table
})

// languageOf returns the language for a base name in lower case and its
// extension; nil if it is unknown.
func languageOf(base, ext string) *language {
	switch base {
	case "makefile", "gnumakefile":
		ext = ".mk"
	case "rakefile", "gemfile":
		ext = ".rb"
	case ".bashrc", ".profile", ".zshrc", ".bash_profile":
		ext = ".sh"
	}
	return languages()[ext]
}
