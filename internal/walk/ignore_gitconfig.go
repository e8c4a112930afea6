package walk

import (
	"path/filepath"
	"strings"
)

// gitConfig holds the settings of git that affect ignore rules.
type gitConfig struct {
	home         string
	excludesFile string
	ignoreCase   bool
}

// maxIncludes bounds the files that a configuration may include.
const maxIncludes = 10

// readUserConfig reads the system's and the user's configuration files; later
// files take precedence, as in git-config(1).
func readUserConfig(getenv func(string) string) *gitConfig {
	home := getenv("HOME")
	if home == "" {
		home = getenv("USERPROFILE")
	}
	c := &gitConfig{home: home}
	xdg := getenv("XDG_CONFIG_HOME")
	if xdg == "" && home != "" {
		xdg = filepath.Join(home, ".config")
	}
	var files []string
	if getenv("GIT_CONFIG_NOSYSTEM") == "" {
		system := getenv("GIT_CONFIG_SYSTEM")
		if system == "" {
			system = "/etc/gitconfig"
		}
		files = append(files, system)
	}
	if user := getenv("GIT_CONFIG_GLOBAL"); user != "" {
		files = append(files, user)
	} else {
		if xdg != "" {
			files = append(files, filepath.Join(xdg, "git", "config"))
		}
		if home != "" {
			files = append(files, filepath.Join(home, ".gitconfig"))
		}
	}
	included := 0
	for _, file := range files {
		c.readFile(file, &included)
	}
	if c.excludesFile == "" && xdg != "" {
		c.excludesFile = filepath.Join(xdg, "git", "ignore")
	}
	return c
}

// readFile reads the settings of a file and of the files that it includes. It
// ignores a file that cannot be read. included is the number of includes so
// far.
func (c *gitConfig) readFile(file string, included *int) {
	if text, err := readUserFile(file); err == nil {
		c.parse(string(text), filepath.Dir(file), included)
	}
}

// parse reads the settings of a file in dir. It follows includes only if
// included, their count so far, is not nil.
func (c *gitConfig) parse(text, dir string, included *int) {
	section := ""
	for text != "" {
		var line string
		line, text = nextConfigLine(text)
		if strings.HasPrefix(line, "[") {
			name, rest, ok := strings.Cut(line[1:], "]")
			if !ok {
				return
			}
			section, line = strings.ToLower(strings.TrimSpace(name)), strings.TrimSpace(rest)
		}
		key, value, hasValue := strings.Cut(line, "=")
		value = parseConfigValue(value)
		switch section + "." + strings.ToLower(strings.TrimSpace(key)) {
		case "core.ignorecase":
			c.ignoreCase = !hasValue || isTrue(value)
		case "core.excludesfile":
			c.excludesFile = c.expandPath(value, "")
		case "include.path":
			if included != nil && *included < maxIncludes && value != "" {
				*included++
				c.readFile(c.expandPath(value, dir), included)
			}
		}
	}
}

// expandPath replaces ~/ by the home directory and, unless dir is empty,
// resolves a path relative to dir.
func (c *gitConfig) expandPath(path, dir string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && c.home != "" {
		return filepath.Join(c.home, rest)
	}
	if path != "" && dir != "" && !filepath.IsAbs(path) {
		return filepath.Join(dir, path)
	}
	return path
}

// isTrue reports whether a boolean setting is true for git.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on", "1":
		return true
	}
	return false
}

// nextConfigLine returns the first line of text, joined with its continuation
// lines and trimmed, and the text after it.
func nextConfigLine(text string) (line, rest string) {
	for {
		part, after, _ := strings.Cut(text, "\n")
		part = strings.TrimSuffix(part, "\r")
		text = after
		if endsInBackslash(part) {
			line += part[:len(part)-1]
			if text != "" {
				continue
			}
		} else {
			line += part
		}
		return strings.TrimSpace(line), text
	}
}

// endsInBackslash reports whether s ends with an unescaped backslash.
func endsInBackslash(s string) bool {
	n := len(s) - len(strings.TrimRight(s, `\`))
	return n%2 == 1
}

// parseConfigValue returns a value without quotes, escapes and comments.
func parseConfigValue(raw string) string {
	var b strings.Builder
	quoted := false
	solid := 0 // length up to which trailing white space is kept
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '"':
			quoted = !quoted
			solid = b.Len()
			continue
		case c == '\\' && i+1 < len(raw):
			i++
			c = raw[i]
			if j := strings.IndexByte("ntb", c); j >= 0 {
				c = "\n\t\b"[j]
			}
			b.WriteByte(c)
			solid = b.Len()
			continue
		case !quoted && (c == '#' || c == ';'):
			return b.String()[:solid]
		case !quoted && b.Len() == 0 && (c == ' ' || c == '\t'):
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			solid = b.Len()
		}
	}
	return b.String()[:solid]
}
