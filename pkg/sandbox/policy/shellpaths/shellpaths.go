// Package shellpaths finds the words of a shell command that may be paths of
// programs and scripts which the command runs.
package shellpaths

import (
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// Paths holds the paths that a command names, relative to its working
// directory, sorted. A path may begin with ~.
type Paths struct {
	// Scripts are run by an interpreter, whether or not they exist. A directory
	// stands for the file in it that the interpreter runs, and a name may lack
	// the extension that the interpreter adds.
	Scripts []string
	// Programs are the paths of programs that the command runs, and the names of
	// programs in the directories of variables whose name ends in PATH, whether
	// or not they exist.
	Programs []string
	// Words are arguments, which may be programs or scripts if such a file exists.
	Words []string
}

const (
	// maxCommandBytes and the limits below bound the work for one command;
	// words beyond them are ignored.
	maxCommandBytes = 64 << 10
	maxDirs         = 16  // directories of one command
	maxWords        = 256 // words of one command
	maxScriptWords  = 10_000
	maxNesting      = 4  // commands in words of commands
	maxLoopItems    = 16 // words of a for loop
	maxBraceParts   = 16 // parts and braces of a word whose braces are expanded
	maxBraceWords   = 16 // words that the braces of a word make
	maxCachedPaths  = 1000
)

var (
	cacheMu sync.Mutex
	// cachedPaths holds the results of parsePaths for at most maxCachedPaths
	// commands; cacheMu guards it.
	cachedPaths = map[string]Paths{}
)

// Of returns the paths of a command. A word counts below each directory that the
// command enters or searches: of cd and pushd, of options such as --chdir and -C,
// and of variables whose name ends in PATH. A beginning with an unknown variable or
// with the output of a command counts as the working directory. Words with a
// pattern or with an unknown variable within are left out, and so are the arguments
// of git and names of programs that are searched for in PATH. A command that cannot
// be parsed has no paths. Of is safe for concurrent use.
func Of(command string) Paths {
	cacheMu.Lock()
	defer cacheMu.Unlock()
	if known, ok := cachedPaths[command]; ok {
		return known
	}
	p := parsePaths(command, false)
	if len(cachedPaths) >= maxCachedPaths {
		clear(cachedPaths)
	}
	cachedPaths[command] = p
	return p
}

// OfScript returns the paths of a script of bash or direnv. It differs from Of in
// that only words at the place of a command count as programs and interpreters,
// and only the words of eval, trap and -c as commands: a script has many words
// that name data. Words is empty.
func OfScript(script string) Paths { return parsePaths(script, true) }

// parsePaths parses a command, or with isScript a script, and returns its paths
// as Of and OfScript do.
func parsePaths(command string, isScript bool) Paths {
	f := finder{isScript: isScript, dirs: []string{""}, vars: map[string]string{"HOME": "~"}}
	f.parse(command, 0)
	return f.result()
}

// finder is the state of one call of parsePaths: the words found so far and the
// values of variables.
type finder struct {
	isScript                       bool
	dirs, words, scripts, programs []string
	names                          []string // of programs, searched for in search
	search                         []string // directories of variables whose name ends in PATH
	vars                           map[string]string
	wordCount                      int // words so far
}

// parse adds the words of all commands in a text. depth counts the texts around it; one
// that is too deep, too long or not valid bash is ignored.
func (f *finder) parse(text string, depth int) {
	if depth > maxNesting || len(text) > maxCommandBytes {
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if err != nil {
		return
	}
	f.walk(file, depth)
}

// walk adds the words of all commands in node, of the syntax tree. depth is as
// for parse.
func (f *finder) walk(node syntax.Node, depth int) {
	syntax.Walk(node, func(node syntax.Node) bool {
		switch x := node.(type) {
		case *syntax.Stmt:
			f.addRedirections(x, depth)
		case *syntax.CallExpr:
			f.addCall(x, depth)
		case *syntax.DeclClause:
			for _, a := range x.Args {
				f.addAssign(a, depth)
			}
		case *syntax.ForClause:
			return f.addLoop(x, depth)
		}
		return true
	})
}

// addLoop searches a loop once for each of its words, up to maxWordCount words in all. It
// returns true, and searches nothing, if the words are not known, are too many or the
// loop is nested too deeply: the caller then searches the loop itself.
func (f *finder) addLoop(loop *syntax.ForClause, depth int) bool {
	iter, ok := loop.Loop.(*syntax.WordIter)
	if !ok || iter.Name == nil || len(iter.Items) == 0 || len(iter.Items) > maxLoopItems || depth >= maxNesting {
		return true
	}
	for _, item := range iter.Items {
		if f.wordCount++; f.wordCount > f.maxWordCount() {
			return false
		}
		f.vars[iter.Name.Value] = f.expand(item)
		for _, stmt := range loop.Do {
			f.walk(stmt, depth+1)
		}
		if !f.isScript {
			f.words = append(f.words, f.expand(item))
		}
	}
	return false
}

var (
	// interpreterName matches the names of shells and other interpreters, also
	// with a directory.
	interpreterName = lazyregexp.New(`^(?:.*/)?(?:(?:ba|da|z|k|mk|a)?sh|busybox|source|\.|source_env|source_env_if_exists|python[\d.]*|pypy\d*|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh|Rscript|osascript)$`)
	// assignmentWord matches NAME=value as a word of a command.
	assignmentWord = lazyregexp.New(`^(\w+)=((?s:.*))$`)
	// moduleName matches the dotted name of a Python module.
	moduleName = lazyregexp.New(`^\w+(\.\w+)*$`)
	// dirOption matches an option with a directory, such as --chdir=DIR or
	// -CDIR, and captures the directory.
	dirOption = lazyregexp.New(`^(?:--(?:chdir|directory|cwd|prefix)=|-C)(.+)$`)
	// wrapperName matches a command that runs the command after it.
	wrapperName = lazyregexp.New(`^(?:.*/)?(?:env|exec|command|builtin|eval|nice|nohup|setsid|stdbuf|timeout|time|xargs|sudo|direnv_load|strict_env|unstrict_env)$`)
	// numberOrDuration matches an argument of a wrapper such as timeout or
	// nice: 10, 1.5s.
	numberOrDuration = lazyregexp.New(`^[\d.]+[smhd]?$`)
	// scriptVariable matches a variable whose value a shell or Python runs when it starts.
	scriptVariable = lazyregexp.New(`^(?:BASH_ENV|ENV|PYTHONSTARTUP)$`)
)

// addCall adds the words of a simple command, and applies its assignments. depth is as in
// parse.
func (f *finder) addCall(call *syntax.CallExpr, depth int) {
	for _, a := range call.Assigns {
		f.addAssign(a, depth)
	}
	var words []string
	for _, arg := range call.Args {
		for _, word := range expandBraces(arg) {
			words = append(words, f.expand(word))
		}
	}
	f.addWords(words, depth)
}

// addAssign applies an assignment. The words of an array may be a command. depth is as in
// parse.
func (f *finder) addAssign(a *syntax.Assign, depth int) {
	switch {
	case a.Name == nil:
	case a.Value != nil:
		f.assign(a.Name.Value, f.expand(a.Value), depth)
	case a.Array != nil && !f.isScript:
		var words []string
		for _, elem := range a.Array.Elems {
			if elem.Value != nil {
				words = append(words, f.expand(elem.Value))
			}
		}
		f.addWords(words, depth)
	}
}

// maxWordCount returns the largest number of words that are examined, which is
// larger for a script.
func (f *finder) maxWordCount() int {
	if f.isScript {
		return maxScriptWords
	}
	return maxWords
}

// addRedirections adds the files, and parses the texts, that an interpreter reads from
// standard input. depth is as in parse.
func (f *finder) addRedirections(stmt *syntax.Stmt, depth int) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	isInterpreter := ok && slices.ContainsFunc(call.Args, func(arg *syntax.Word) bool { return interpreterName().MatchString(f.expand(arg)) })
	for _, r := range stmt.Redirs {
		switch {
		case r.Op == syntax.RdrIn && r.Word != nil && isInterpreter:
			f.scripts = append(f.scripts, f.expand(r.Word))
		case r.Op == syntax.RdrIn && r.Word != nil && !f.isScript:
			f.words = append(f.words, f.expand(r.Word))
		case r.Op == syntax.WordHdoc && isInterpreter:
			f.parse(f.expand(r.Word), depth+1)
		case r.Hdoc != nil && isInterpreter:
			f.parse(f.expand(r.Hdoc), depth+1)
		}
	}
}

// addWords adds the expanded words of a command, beginning with its program, and examines
// the command that a wrapper or interpreter gets. depth is as in parse.
func (f *finder) addWords(words []string, depth int) {
	if f.wordCount += len(words); len(words) == 0 || f.wordCount > f.maxWordCount() || path.Base(words[0]) == "git" {
		return
	}
	if f.isScript && (words[0] == "PATH_add" || words[0] == "path_add") { // of direnv
		for _, dir := range words[1:] {
			f.assign("PATH", dir, depth)
		}
		return
	}
	isInterpreter, first := false, true
	for i, word := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		switch m := assignmentWord().FindStringSubmatch(word); {
		case strings.ContainsAny(word, " \t\n;&|") && (!f.isScript || before == "-c" || words[0] == "eval" || words[0] == "trap"):
			f.parse(word, depth+1)
		case m != nil && first:
			f.assign(m[1], m[2], depth)
			continue
		}
		if m := dirOption().FindStringSubmatch(word); m != nil {
			f.addDir(m[1])
		}
		switch {
		case word == "" || word == "--":
		case strings.HasPrefix(word, "-"):
			if _, value, ok := strings.Cut(word, "="); ok {
				f.words = append(f.words, value)
			}
		case before == "-m" && isInterpreter && moduleName().MatchString(word):
			f.addModule(word)
			isInterpreter = false
		case (before == "-C" || before == "--chdir" || before == "--directory" || before == "--cwd") && word != "":
			f.addDir(word)
		case (before == "--rcfile" || before == "--init-file") && isInterpreter:
			f.scripts = append(f.scripts, word)
		case (words[0] == "cd" || words[0] == "pushd") && i > 0:
			f.addDir(word)
		case isInterpreter && before != "-c" && before != "-e":
			f.scripts = append(f.scripts, word)
			isInterpreter = false
		case interpreterName().MatchString(word) && (first || !f.isScript):
			isInterpreter = true
			f.names = append(f.names, word)
		case first && strings.Contains(word, "/"):
			f.programs = append(f.programs, word)
		case first:
			f.names = append(f.names, word)
		default:
			f.words = append(f.words, word)
		}
		first = first && (wrapperName().MatchString(word) || numberOrDuration().MatchString(word) || strings.HasPrefix(word, "-"))
	}
}

// assign records the value of a variable. It adds what a variable such as
// BASH_ENV or PATH names.
func (f *finder) assign(name, value string, depth int) {
	switch {
	case strings.HasSuffix(name, "PATH"):
		for _, dir := range strings.Split(value, ":") {
			if dir = wordPath(dir); len(f.search) < maxDirs && dir != unknownPart {
				f.search = append(f.search, dir)
			}
		}
	case len(f.vars) < maxWords && len(value) < maxCommandBytes/maxWords:
		f.vars[name] = value
		if scriptVariable().MatchString(name) {
			f.scripts = append(f.scripts, value)
		}
		if !f.isScript {
			f.parse(value, depth+1)
		}
	}
}

// addDir adds a directory that the command enters, below each earlier one, too.
func (f *finder) addDir(dir string) {
	if dir = wordPath(dir); dir == unknownPart || dir == "" {
		return
	}
	for _, above := range slices.Clone(f.dirs) {
		if below := join(above, dir); len(f.dirs) < maxDirs && !slices.Contains(f.dirs, below) {
			f.dirs = append(f.dirs, below)
		}
	}
}

// addModule adds the files that Python may run for -m name.
func (f *finder) addModule(name string) {
	dir := ""
	for _, part := range strings.Split(name, ".") {
		dir = path.Join(dir, part)
		f.scripts = append(f.scripts, dir+"/__init__.py")
	}
	f.scripts = append(f.scripts, dir+".py", dir+"/__main__.py")
}

// result returns the paths found: the words, below each of the directories.
func (f *finder) result() (p Paths) {
	add := func(list *[]string, words, dirs []string) {
		for _, word := range words {
			word = wordPath(word)
			if word == unknownPart || word == "" || strings.ContainsAny(word, "*?[ \n") && !strings.Contains(word, "/") {
				continue
			}
			for _, dir := range dirs {
				*list = append(*list, join(dir, word))
			}
		}
	}
	all := slices.Concat(f.dirs, f.search)
	add(&p.Scripts, f.scripts, all)
	add(&p.Programs, f.programs, f.dirs)
	add(&p.Programs, f.names, f.search)
	if !f.isScript {
		add(&p.Words, f.words, all)
		add(&p.Words, f.programs, f.search)
		add(&p.Words, f.names, f.dirs[1:])
	}
	for _, list := range []*[]string{&p.Scripts, &p.Programs, &p.Words} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return p
}

// join returns the path of word below dir, or word if it does not depend on
// dir.
func join(dir, word string) string {
	if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") {
		return word
	}
	return path.Join(dir, word)
}

// wordPath returns the path that an expanded word means. It takes an unknown first
// component for the working directory, and returns unknown if another part of the
// word is unknown.
func wordPath(word string) string {
	if rest, ok := strings.CutPrefix(word, unknownPart+"/"); ok {
		word = "./" + rest
	}
	if strings.Contains(word, unknownPart) {
		return unknownPart
	}
	return word
}
