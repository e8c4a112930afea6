//go:build oracle

package walk_test

import (
	"math/rand/v2"
	"path"
	"strings"
)

// generator makes random trees with random ignore files. Names and patterns
// come from the same small set, so that they match.
type generator struct {
	*rand.Rand
	git bool // patterns of git, even where ripgrep reads them differently
}

var plainNames = []string{
	"a", "b", "c", "ab", "abc", "foo", "bar", "foobar", "foo.log", "bar.log", "x.txt", "a.b.c", "x.tar.gz", "A", "Foo",
	"FOO.LOG", "build", "src", "target", ".hid", ".env", ".a.log", "a1", "a-b", "a+b", "(a)", "^a", "$a", "ä", "日本.txt", "~x",
}

var oddNames = []string{
	"sp ace", " lead", "trail ", "#hash", "!bang", `back\slash`, "[x]", "[", "[a", "star*", "what?", "a\tb", "]", "-", "a]b", "{a,b}", "@", "a,b", "\xff\xfe",
}

func pick[T any](g *generator, list ...T) T { return list[g.IntN(len(list))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) name() string {
	if g.chance(12) {
		return pick(g, oddNames...)
	}
	return pick(g, plainNames...)
}

// tree makes a tree; with nested it may contain further repositories.
func (g *generator) tree(nested bool) files {
	f := files{}
	g.fill(f, "", 0, nested)
	return f
}

func (g *generator) fill(f files, dir string, depth int, nested bool) {
	taken := map[string]bool{}
	for range 1 + g.IntN(7) {
		name := g.name()
		if taken[name] {
			continue
		}
		taken[name] = true
		full := path.Join(dir, name)
		switch {
		case depth < 4 && g.chance(45):
			f[full+"/"] = ""
			g.fill(f, full, depth+1, nested)
		case g.chance(6):
			f[full] = "-> " + pick(g, ".", "..", "a", "foo", "/nowhere", "src")
		default:
			f[full] = ""
		}
	}
	if g.chance(45 - 8*depth) {
		f[path.Join(dir, ".gitignore")] = g.ignoreFile(gitFile)
	}
	if g.git {
		return
	}
	if g.chance(25 - 5*depth) {
		f[path.Join(dir, ".ignore")] = g.ignoreFile(rgFile)
	}
	if g.chance(12 - 2*depth) {
		f[path.Join(dir, ".rgignore")] = g.ignoreFile(rgFile)
	}
	if depth == 0 && g.chance(75) || nested && g.chance(7) {
		g.repository(f, dir)
	}
}

// repository makes dir the top of a repository, in one of the supported ways.
func (g *generator) repository(f files, dir string) {
	switch {
	case g.chance(10):
		f[path.Join(dir, ".jj")+"/"] = ""
	case g.chance(80):
		f[path.Join(dir, ".git/info/exclude")] = g.ignoreFile(gitFile)
	default:
		f[path.Join(dir, ".git")+"/"] = ""
	}
}

type fileKind int

const (
	gitFile fileKind = iota
	rgFile
)

func (g *generator) ignoreFile(kind fileKind) string {
	var b strings.Builder
	if g.chance(5) {
		b.WriteString("\ufeff")
	}
	end := "\n"
	if g.chance(10) {
		end = "\r\n"
	}
	lines := 1 + g.IntN(4)
	if g.chance(10) {
		lines += 20
	}
	for i := range lines {
		b.WriteString(g.line(kind))
		if i < lines-1 || g.chance(80) {
			b.WriteString(end)
		}
	}
	return b.String()
}

func (g *generator) line(kind fileKind) string {
	switch g.IntN(30) {
	case 0:
		return ""
	case 1:
		return "# " + pick(g, plainNames...)
	case 2, 3:
		if (g.git || kind == rgFile) && g.chance(10) {
			return "!" // in git's files, ripgrep reads it differently from git
		}
		if (g.git || kind == rgFile) && g.chance(20) {
			return pick(g, "[", "[]", "[a") // the same
		}
		return pick(g, "*", "**", "/*", "*/", "**/", "/**", ".*", "!*/", "!.*", "!*", "/", "//", `\`, "**/**", "*/*", "/**/")
	}
	var b strings.Builder
	if g.chance(25) {
		b.WriteString("!")
	} else if g.chance(3) {
		b.WriteString(pick(g, `\!`, `\#`))
	}
	if g.chance(18) {
		b.WriteString("/")
	}
	if g.chance(10) {
		b.WriteString("**/")
	}
	for i := range 1 + g.IntN(5)/3 + g.IntN(6)/5 {
		if i > 0 {
			b.WriteString(pick(g, "/", "/", "/", "/**/", "/*/"))
		}
		b.WriteString(g.element(kind))
	}
	if g.chance(8) {
		b.WriteString("/**")
	}
	if g.git && strings.Contains(b.String(), "/") {
		// In a pattern with slashes, git treats stars directly after the
		// literal beginning like those between slashes, contrary to its
		// documentation.
		joined := strings.ReplaceAll(b.String(), "**/", "\x01")
		joined = strings.NewReplacer("/\x01", "/**/", "**", "*", "\x01", "*/").Replace(joined)
		b.Reset()
		b.WriteString(joined)
	}
	if g.chance(22) {
		b.WriteString("/")
	}
	if g.chance(6) {
		b.WriteString(pick(g, " ", "  ", `\ `))
	}
	if g.git && g.chance(4) {
		b.WriteString(pick(g, "\t", " \t", `\  `, `\`))
	}
	return b.String()
}

// element returns a name turned into a pattern that may match it.
func (g *generator) element(kind fileKind) string {
	name := g.name()
	if strings.Contains(name, "\xff") && !g.git {
		name = "a" // ripgrep stops reading at a line that is not UTF-8
	}
	if g.chance(35) && !strings.ContainsAny(name, `\[]*?{}`) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 0x80 || !g.chance(30) {
			if strings.IndexByte(`\[]*?{},`, c) >= 0 {
				b.WriteByte('\\')
			}
			b.WriteByte(c)
			continue
		}
		b.WriteString(g.wild(c, kind))
		if g.chance(20) {
			break
		}
	}
	return b.String()
}

// wild returns a pattern to replace the byte c.
func (g *generator) wild(c byte, kind fileKind) string {
	safe := string(c)
	if strings.IndexByte(`\[]*?{},!^-`, c) >= 0 {
		safe = "x"
	}
	choices := []string{"*", "*", "?", "**", "[" + safe + "]", "[" + safe + "z]", "[a-f]", `\` + string(c), "[]" + safe + "]", "[a-]", "[-a]"}
	if kind == rgFile {
		choices = append(choices, "{"+safe+",zz}", "{q,"+safe+"*}", "{{"+safe+",k},j}", "{,"+safe+"}", "{"+safe, `[\`+safe+"]", `[\]`+safe+"]", "[z-a]", "["+safe)
	}
	if g.git {
		choices = append(choices, "[!"+safe+"]", "[^q]", "[[:alpha:]]", "[[:upper:]_]", "[![:digit:]]", "[[:nope:]]", `[\`+string(c)+"]", "{"+safe+",x}", "[z-a]", "[[:alpha]", "***",
			pick(g, "[", "[!", "[^", "[]", "["+safe)+pick(g, "[:", "[::", "[:alpha:", "[:", "[=", "[.", ":")+pick(g, "]", ":]", "", "-")+pick(g, "", safe, "a-", "[:digit:]", "[")+pick(g, "]", "", ":]"))
	}
	return pick(g, choices...)
}
