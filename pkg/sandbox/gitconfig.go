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

// GitRuns lists the settings of a git configuration file, as
// "section.name.key=value", that make git run a program, read settings from
// elsewhere, or look for hooks elsewhere. ok is false for a file that git
// would not understand.
//
// It is broad: a key that sounds like a program counts in any section.
func GitRuns(config []byte) (settings []string, ok bool) {
	p := gitParser{rest: config}
	p.rest = bytes.TrimPrefix(p.rest, []byte("\xef\xbb\xbf"))
	for p.next() {
		if gitRuns(p.section, p.key, p.value) {
			settings = append(settings, p.section+"."+p.key+"="+p.value)
		}
	}
	return settings, !p.bad
}

// gitRunKeys are the keys, in whichever section, whose value is a program or
// leads to one.
var gitRunKeys = []string{
	"hookspath", "fsmonitor", "askpass", "gitproxy", "attributesfile", "worktree", "helper", "clean", "smudge", "process", "textconv",
	"driver", "external", "uploadpack", "receivepack", "uploadarchive", "vcs", "templatedir", "difffilter", "tunnel", "smtpserver", "browser", "httpd",
}

var gitRunEndings = []string{"command", "cmd", "hook", "editor", "pager", "program"}

// gitRuns judges one setting; section and key are in lower case, the section
// with its name: filter.lfs.
func gitRuns(section, key, value string) bool {
	kind, _, _ := strings.Cut(section, ".")
	switch {
	case kind == "include" || kind == "includeif":
		return true
	case strings.HasPrefix(strings.TrimSpace(value), "!") || strings.Contains(section+value, "ext::"):
		return true
	case kind == "protocol" && key == "allow":
		return value != "never"
	case isGitBool(value) && (kind == "pager" || key == "fsmonitor"):
		return false
	case kind == "pager" || kind == "hook":
		return true
	case (kind == "mergetool" || kind == "difftool" || kind == "browser" || kind == "man") && key == "path":
		return true
	}
	return slices.Contains(gitRunKeys, key) || slices.ContainsFunc(gitRunEndings, func(end string) bool { return strings.HasSuffix(key, end) })
}

func isGitBool(value string) bool {
	return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(value))
}

// gitParser reads a file as git's config.c does: by characters, so that a
// section and a key may stand on one line.
type gitParser struct {
	rest                []byte
	section, key, value string
	bad                 bool
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
	default:
		p.bad = true
	}
}

func (p *gitParser) readValue() {
	var value []byte
	quoted := false
	for {
		c := p.take()
		switch {
		case c == 0 || c == '\n':
			p.bad = p.bad || quoted
			p.value = strings.TrimSpace(string(value))
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

// isGitConfig reports whether a path is that of a repository's settings, also
// of one within another.
func isGitConfig(abs string) bool {
	parts := splitPath(abs)
	last := parts[len(parts)-1]
	if !is(last, "config") && !is(last, "config.worktree") {
		return false
	}
	for i, part := range parts[:len(parts)-1] {
		if part = foldName(part); is(part, ".git") || endsIn(part, ".git") && i == len(parts)-2 {
			return true
		}
	}
	return false
}

// checkedConfig is write, for a repository's settings: what they would make
// git run beyond what they do now is refused.
func (t *Target) checkedConfig(ctx context.Context, write func(io.Writer) error) (func(io.Writer) error, error) {
	if !isGitConfig(t.Path) && !isGitConfig(t.asked) || t.fs.matches(t.fs.writes().allow, t.Path) {
		return write, nil
	}
	var content bytes.Buffer
	if err := writeTo(ctx, &content, write); err != nil {
		return nil, err
	}
	if content.Len() > maxGitConfig {
		return nil, toolerr.New(toolerr.TooLarge, "%s would be larger than %d bytes, which no settings are", EscapeName(t.name), maxGitConfig)
	}
	var before []string
	if file, err := t.open(); err == nil {
		defer file.Close()
		old, err := io.ReadAll(io.LimitReader(file, maxGitConfig))
		if err != nil {
			return nil, err
		}
		before, _ = GitRuns(old)
	} else if _, err2 := t.current(); err2 == nil {
		return nil, err
	}
	after, ok := GitRuns(content.Bytes())
	if !ok {
		return nil, toolerr.New(toolerr.DeniedPath, "%s is not written: git would not understand it any more, so nobody can tell what it would run", EscapeName(t.name))
	}
	for _, setting := range after {
		if !slices.Contains(before, setting) {
			return nil, toolerr.New(toolerr.DeniedPath, "%s is not written: %s makes git run a program or follow other settings; ask the user, who can allow it with --allow-write",
				EscapeName(t.name), EscapeName(setting))
		}
	}
	return Bytes(content.Bytes()), nil
}
