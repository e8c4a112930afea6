package walk

import (
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
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
		c.parse(text, filepath.Dir(file), included)
	}
}

// parse reads the settings of a file in dir. It follows includes only if
// included, their count so far, is not nil.
func (c *gitConfig) parse(text []byte, dir string, included *int) {
	for s := range gitfile.Settings(text) {
		switch s.Section + "." + s.Key {
		case "core.ignorecase":
			c.ignoreCase = s.NoValue || isTrue(s.Value)
		case "core.excludesfile":
			c.excludesFile = c.expandPath(s.Value, "")
		case "include.path":
			if included != nil && *included < maxIncludes && s.Value != "" {
				*included++
				c.readFile(c.expandPath(s.Value, dir), included)
			}
		}
	}
}

// expandPath returns a path of a configuration file with ~/ replaced by the home
// directory, or, unless dir is empty, a relative path joined to dir. It returns
// other paths unchanged, also ~/ without a known home, and ~USER.
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
