package sandbox

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxGitConfig bounds what is read of a repository's settings.
const maxGitConfig = 1 << 20

// gitParser reads a file as git's config.c does: by characters, so that a
// section and a key may stand on one line.
type gitParser struct {
	rest                []byte
	section, key, value string
	bad                 bool
	// left and behind are the numbers of bytes that follow the setting's key, and
	// its value: up to the comment or the line end.
	left, behind int
}

func newGitParser(config []byte) *gitParser {
	return &gitParser{rest: bytes.TrimPrefix(config, []byte("\xef\xbb\xbf"))}
}

// take returns the next character, 0 at the end; CRLF is one line end.
func (p *gitParser) take() byte {
	if len(p.rest) == 0 {
		return 0
	}
	if bytes.HasPrefix(p.rest, []byte("\r\n")) {
		p.rest = p.rest[1:]
	}
	c := p.rest[0]
	p.rest = p.rest[1:]
	if c == 0 {
		p.bad = true
	}
	return c
}

// next reads the next setting.
func (p *gitParser) next() bool {
	for len(p.rest) > 0 && !p.bad {
		switch c := p.take(); {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f':
		case c == '#' || c == ';':
			if end := bytes.IndexByte(p.rest, '\n'); end >= 0 {
				p.rest = p.rest[end:]
			} else {
				p.rest = nil
			}
		case c == '[':
			p.readSection()
		case lower(c) >= 'a' && lower(c) <= 'z':
			p.left = len(p.rest) + 1
			p.readSetting(c)
			return !p.bad
		default:
			p.bad = true
		}
	}
	return false
}

// readSection reads what stands between brackets.
func (p *gitParser) readSection() {
	var name []byte
	quoted := false
	for {
		c := p.take()
		switch {
		case c == 0 || c == '\n':
			p.bad = true
			return
		case c == ']' && !quoted:
			p.section = string(name)
			return
		case c == '"':
			quoted = !quoted
			if quoted {
				name = append(name, '.')
			}
		case quoted && c == '\\':
			name = append(name, p.take())
		case quoted:
			name = append(name, c)
		case c != ' ' && c != '\t':
			name = append(name, lower(c))
		}
	}
}

// readSetting reads a key that begins with c, and its value.
func (p *gitParser) readSetting(c byte) {
	key := []byte{lower(c)}
	for c = p.take(); lower(c) >= 'a' && lower(c) <= 'z' || c >= '0' && c <= '9' || c == '-'; c = p.take() {
		key = append(key, lower(c))
	}
	for c == ' ' || c == '\t' {
		c = p.take()
	}
	p.key, p.value = string(key), ""
	switch c {
	case '=':
		p.readValue()
	case 0, '\n':
		p.endValue(c)
	default:
		p.bad = true
	}
}

// endValue notes that a value ended at c, a line feed or the end of the file.
func (p *gitParser) endValue(c byte) {
	p.behind = len(p.rest)
	if c == '\n' {
		p.behind++
	}
}

func (p *gitParser) readValue() {
	var value []byte
	quoted, commented := false, false
	for {
		c := p.take()
		switch {
		case c == 0 || c == '\n':
			p.bad = p.bad || quoted
			p.value = strings.TrimSpace(string(value))
			if !commented {
				p.endValue(c)
			}
			return
		case c == '"':
			quoted = !quoted
		case c == '\\':
			switch c = p.take(); c {
			case '\n':
			case 't':
				value = append(value, '\t')
			case 'n':
				value = append(value, '\n')
			case 'b':
				value = append(value, '\b')
			case '"', '\\':
				value = append(value, c)
			default:
				p.bad = true
			}
		case !quoted && (c == '#' || c == ';'):
			commented, p.behind = true, len(p.rest)+1
			if end := bytes.IndexByte(p.rest, '\n'); end >= 0 {
				p.rest = p.rest[end:]
			} else {
				p.rest = nil
			}
		default:
			value = append(value, c)
		}
	}
}

// isGitConfig reports whether a path is by its name that of a repository's
// settings, also of one within another, or of the list of its submodules.
func isGitConfig(abs string) bool {
	parts := splitPath(abs)
	last := foldName(parts[len(parts)-1])
	if is(last, ".gitmodules") {
		return true
	}
	if !is(last, "config") && !is(last, "config.worktree") {
		return false
	}
	for i, part := range parts[:len(parts)-1] {
		part = foldName(part)
		if is(part, ".git") || endsIn(part, ".git") && (i == len(parts)-2 || is(foldName(parts[i+1]), "modules")) {
			return true
		}
	}
	return false
}

// gitRuns is GitRuns for the target: of a list of submodules, what makes git
// run something or leave the directory.
func (t *Target) gitRuns(config []byte) (settings []string, ok bool) {
	if !is(foldName(t.base), ".gitmodules") {
		return GitRunsIn(t.Root.Path, t.Path, config)
	}
	p := newGitParser(config)
	for p.next() {
		_, name, _ := strings.Cut(p.section, ".")
		path := p.key == "path" && (leavesUp(p.value) || strings.HasPrefix(p.value, "-") || strings.HasPrefix(p.value, "/"))
		if path || leavesUp(name) || gitRuns(p.section, p.key, p.value) {
			settings = append(settings, p.setting())
		}
	}
	return settings, !p.bad
}

// leavesUp reports whether a component of a path is "..".
func leavesUp(path string) bool {
	return slices.Contains(strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }), "..")
}

// checkedConfig is write, for a repository's settings: what they would make
// git run beyond what they do now is refused.
func (t *Target) checkedConfig(ctx context.Context, write func(io.Writer) error) (func(io.Writer) error, error) {
	if t.fs.matches(t.fs.writes().allow, t.Path) || !isGitConfig(t.Path) && !isGitConfig(t.asked) && !t.inGitConfig() && !t.includedConfig() {
		t.unjudged = true
		return write, nil
	}
	var content bytes.Buffer
	if err := writeTo(ctx, &content, write); err != nil {
		return nil, err
	}
	if content.Len() > maxGitConfig {
		return nil, toolerr.New(toolerr.TooLarge, "%s would be larger than %d bytes, too large for git settings", EscapeName(t.name), maxGitConfig)
	}
	var before []string
	if file, err := t.open(); err == nil {
		defer file.Close()
		old, err := io.ReadAll(io.LimitReader(file, maxGitConfig))
		if err != nil {
			return nil, err
		}
		before, _ = t.gitRuns(old)
	} else if _, err2 := t.current(); err2 == nil {
		return nil, err
	}
	after, ok := t.gitRuns(content.Bytes())
	if !ok {
		return nil, toolerr.New(toolerr.DeniedPath, "%s is not written: git could no longer parse it, so its effect cannot be checked", EscapeName(t.name))
	}
	for _, setting := range after {
		if !slices.Contains(before, setting) {
			return nil, toolerr.New(toolerr.DeniedPath, "%s is not written: %s makes git run a program or follow other settings; ask the user, who can allow it with --allow-write",
				EscapeName(t.name), EscapeName(setting))
		}
	}
	return Bytes(content.Bytes()), nil
}
