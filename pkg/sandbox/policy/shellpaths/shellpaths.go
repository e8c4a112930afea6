// Package shellpaths finds the words of a shell command that may be paths of
// programs and scripts which the command runs.
package shellpaths

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Paths are the paths of a command, relative to its working directory, sorted. A
// path may begin with ~.
type Paths struct {
	// Scripts are run by an interpreter, whether or not they exist. A directory
	// stands for the file in it that the interpreter runs.
	Scripts []string
	// Words are programs, scripts or arguments if such a file exists.
	Words []string
}

const (
	maxCommandBytes = 64 << 10
	maxDirs         = 16  // directories of one command
	maxWords        = 256 // words of one command
	maxNesting      = 4   // commands in words of commands
	maxRemembered   = 1000
)

var (
	mu         sync.Mutex
	remembered = map[string]Paths{}
)

// Of returns the paths of a command. A word counts below each directory that the
// command enters or searches: of cd and pushd, of options such as --chdir and -C,
// and of variables whose name ends in PATH. A beginning with an unknown variable or
// with the output of a command counts as the working directory. Words with a
// pattern or with an unknown variable within are left out, and so are the arguments
// of git and names of programs that are searched for in PATH. A command that cannot
// be parsed has no paths. Of is safe for concurrent use.
func Of(command string) Paths {
	mu.Lock()
	defer mu.Unlock()
	if known, ok := remembered[command]; ok {
		return known
	}
	f := finder{dirs: []string{""}, vars: map[string]string{"HOME": "~"}}
	f.parse(command, 0)
	p := f.paths()
	if len(remembered) >= maxRemembered {
		clear(remembered)
	}
	remembered[command] = p
	return p
}

// finder collects the words of a command.
type finder struct {
	dirs, words, scripts []string
	names                []string // of programs, searched for in search
	search               []string // directories of variables whose name ends in PATH
	vars                 map[string]string
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
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			f.addCall(call, depth)
		}
		return true
	})
}

// unknown replaces a part of a word that only the shell knows.
const unknown = "\x00"

var (
	interpreter = regexp.MustCompile(`^(?:.*/)?(?:(?:ba|da|z|k|mk|a)?sh|busybox|source|\.|python[\d.]*|pypy\d*|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh|Rscript|osascript)$`)
	assignment  = regexp.MustCompile(`^(\w+)=(.*)$`)
	module      = regexp.MustCompile(`^\w+(\.\w+)*$`)
	dirOption   = regexp.MustCompile(`^(?:--(?:chdir|directory|cwd|prefix)=|-C)(.+)$`)
)

// addCall adds the words and assignments of a simple command.
func (f *finder) addCall(call *syntax.CallExpr, depth int) {
	for _, a := range call.Assigns {
		if a.Name != nil && a.Value != nil {
			f.assign(a.Name.Value, f.expand(a.Value), depth)
		}
	}
	var words []string
	for _, arg := range call.Args {
		words = append(words, f.expand(arg))
	}
	if len(words) == 0 || len(f.words) > maxWords || path.Base(words[0]) == "git" {
		return
	}
	isInterpreter, first := false, true
	for i, word := range words {
		before := ""
		if i > 0 {
			before = words[i-1]
		}
		switch m := assignment.FindStringSubmatch(word); {
		case strings.ContainsAny(word, " \t\n;&|"):
			f.parse(word, depth+1)
		case m != nil && first:
			f.assign(m[1], m[2], depth)
			continue
		}
		if m := dirOption.FindStringSubmatch(word); m != nil {
			f.enter(m[1])
		}
		switch {
		case word == "" || word == "--":
		case strings.HasPrefix(word, "-"):
			if _, value, ok := strings.Cut(word, "="); ok {
				f.words = append(f.words, value)
			}
		case before == "-m" && isInterpreter && module.MatchString(word):
			f.addModule(word)
			isInterpreter = false
		case (before == "-C" || before == "--chdir" || before == "--directory" || before == "--cwd") && word != "":
			f.enter(word)
		case (words[0] == "cd" || words[0] == "pushd") && i > 0:
			f.enter(word)
		case isInterpreter && before != "-c" && before != "-e":
			f.scripts = append(f.scripts, word)
			isInterpreter = false
		case interpreter.MatchString(word):
			isInterpreter = true
			f.names = append(f.names, word)
		case first && !strings.Contains(word, "/"):
			f.names = append(f.names, word)
		default:
			f.words = append(f.words, word)
		}
		first = first && (word == "env" || word == "exec" || word == "command" || word == "nice" || word == "nohup" || strings.HasPrefix(word, "-"))
	}
}

// assign handles NAME=value.
func (f *finder) assign(name, value string, depth int) {
	switch {
	case strings.HasSuffix(name, "PATH"):
		for _, dir := range strings.Split(value, ":") {
			if dir = plain(dir); len(f.search) < maxDirs && dir != unknown {
				f.search = append(f.search, dir)
			}
		}
	case len(f.vars) < maxWords && len(value) < maxCommandBytes/maxWords:
		f.vars[name] = value
		f.parse(value, depth+1)
	}
}

// enter adds a directory that the command enters, below each earlier one, too.
func (f *finder) enter(dir string) {
	if dir = plain(dir); dir == unknown || dir == "" {
		return
	}
	for _, above := range slices.Clone(f.dirs) {
		if below := join(above, dir); len(f.dirs) < maxDirs && !slices.Contains(f.dirs, below) {
			f.dirs = append(f.dirs, below)
		}
	}
}

// addModule adds the files that Python may run for -m.
func (f *finder) addModule(name string) {
	dir := ""
	for _, part := range strings.Split(name, ".") {
		dir = path.Join(dir, part)
		f.scripts = append(f.scripts, dir+"/__init__.py")
	}
	f.scripts = append(f.scripts, dir+".py", dir+"/__main__.py")
}

// paths joins the words with the directories.
func (f *finder) paths() (p Paths) {
	add := func(list *[]string, words, dirs []string) {
		for _, word := range words {
			word = plain(word)
			if word == unknown || word == "" || strings.ContainsAny(word, "*?[ \n") && !strings.Contains(word, "/") {
				continue
			}
			for _, dir := range dirs {
				*list = append(*list, join(dir, word))
			}
		}
	}
	all := slices.Concat(f.dirs, f.search)
	add(&p.Scripts, f.scripts, all)
	add(&p.Words, f.words, all)
	add(&p.Words, f.names, slices.Concat(f.dirs[1:], f.search))
	for _, list := range []*[]string{&p.Scripts, &p.Words} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return p
}

// join returns word below dir, or word if it does not depend on dir.
func join(dir, word string) string {
	if strings.HasPrefix(word, "/") || strings.HasPrefix(word, "~") {
		return word
	}
	return path.Join(dir, word)
}

// plain makes a path of an expanded word: an unknown beginning is the working
// directory. It returns unknown if another part is.
func plain(word string) string {
	if rest, ok := strings.CutPrefix(word, unknown+"/"); ok {
		word = "./" + rest
	}
	if strings.Contains(word, unknown) {
		return unknown
	}
	return word
}

// expand removes the quotes and escapes of a word, and replaces variables.
func (f *finder) expand(word *syntax.Word) string {
	var b strings.Builder
	f.expandParts(&b, word.Parts, false)
	return b.String()
}

// expandParts appends the expanded parts of a word to b, unknown ones as a mark. quoted
// says that they are in double quotes.
func (f *finder) expandParts(b *strings.Builder, parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch x := part.(type) {
		case *syntax.Lit:
			b.WriteString(unescape(x.Value, quoted))
		case *syntax.SglQuoted:
			b.WriteString(x.Value)
		case *syntax.DblQuoted:
			f.expandParts(b, x.Parts, true)
		case *syntax.ParamExp:
			if value, ok := f.vars[x.Param.Value]; ok && x.Exp == nil && x.Slice == nil && x.Repl == nil && !x.Length {
				b.WriteString(value)
			} else {
				b.WriteString(unknown)
			}
		default:
			b.WriteString(unknown)
		}
	}
}

// unescape removes the backslashes of a literal.
func unescape(text string, quoted bool) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && (!quoted || strings.IndexByte("$`\"\\\n", text[i+1]) >= 0) {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}
