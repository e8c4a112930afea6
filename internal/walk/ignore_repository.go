package walk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// repository holds the ignore settings from a repository's git directory.
type repository struct {
	exclude *ruleSet // info/exclude
	global  *ruleSet // core.excludesFile, or the user's default
	fold    bool     // core.ignorecase
}

// openRepository reads the ignore settings of the repository whose work tree
// has its top at src. Missing files count as not set: a directory with an empty
// .git is a repository, too.
func (t *tree) openRepository(src ruleDir) repository {
	var repo repository
	user := t.userConfig()
	config := *user
	gitDir := commonGitDir(src)
	if gitDir != "" {
		config.excludesFile = ""
		if text, err := readRegularFile(filepath.Join(gitDir, "config")); err == nil {
			config.parse(text, gitDir, nil)
		}
		repo.fold = config.ignoreCase
		repo.exclude = t.loadRuleFile(outerDir(filepath.Join(gitDir, "info")), "exclude", gitDialect, repo.fold)
	}
	file := user.excludesFile
	if own := config.excludesFile; own != "" {
		// A repository may be hostile, and omissions from a listing reveal
		// patterns: it may only name a file inside itself.
		if path, ok := resolveWithin(src.abs(), own); ok {
			file = path
		} else {
			t.addFault(src.shown(".git"), toolerr.New(toolerr.DeniedPath,
				"core.excludesFile is outside the repository and is not read"))
		}
	}
	repo.global = t.globalRules(file, repo.fold)
	return repo
}

// resolveWithin resolves a path relative to dir, following links. ok reports
// whether the result is in dir.
func resolveWithin(dir, path string) (resolved string, ok bool) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		resolved = path // it does not exist: nothing will be read
	}
	rel, err := filepath.Rel(dir, resolved)
	return resolved, err == nil && filepath.IsLocal(rel)
}

// commonGitDir returns the absolute path of the git directory that holds config
// and info/exclude, or "" if the work tree has none. It is .git itself or, in a
// linked work tree or a submodule, the directory that the .git file leads to
// (gitrepository-layout(5)).
func commonGitDir(src ruleDir) string {
	path := filepath.Join(src.abs(), ".git")
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	if info.IsDir() {
		return path
	}
	gitDir, ok := readPathFile(path, "gitdir: ")
	if !ok {
		return ""
	}
	gitDir = absolute(src.abs(), gitDir)
	if common, ok := readPathFile(filepath.Join(gitDir, "commondir"), ""); ok {
		return absolute(gitDir, common)
	}
	return gitDir
}

// readPathFile returns the path in the first line of a file, after key. ok is
// false if the file cannot be read or has another form.
func readPathFile(path, key string) (target string, ok bool) {
	text, err := readRegularFile(path)
	if err != nil {
		return "", false
	}
	line, _, _ := strings.Cut(string(text), "\n")
	target, ok = strings.CutPrefix(strings.TrimSuffix(line, "\r"), key)
	return target, ok && target != "" && !strings.ContainsRune(target, 0)
}

// absolute returns path, relative to dir unless it is absolute.
func absolute(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// globalRules returns the rules of the user's global excludes. It reads each file once
// per walk. A file that cannot be read is recorded as a fault; the result then is nil.
// file is the path of the file of excludes, "" for none; fold means that names are
// matched regardless of case.
func (t *tree) globalRules(file string, fold bool) *ruleSet {
	if file == "" {
		return nil
	}
	key := file
	if fold {
		key += "\x00fold"
	}
	t.mu.Lock()
	set, ok := t.globals[key]
	t.mu.Unlock()
	if ok {
		return set
	}
	text, err := readUserFile(file)
	if err == nil {
		set, _ = parseRules(text, gitDialect, fold) //nolint:errcheck // git has no braces
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.addFault(file, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.globals == nil {
		t.globals = make(map[string]*ruleSet)
	}
	t.globals[key] = set
	return set
}

// readUserFile reads a file of the user's own configuration. Unlike
// readRegularFile it follows links, since such files often are links to a
// directory of dot files.
func readUserFile(path string) ([]byte, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return readRegularFile(resolved)
}

// userConfig returns the git configuration of the system and the user. It reads
// the files at the first call.
func (t *tree) userConfig() *gitConfig {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.user == nil {
		t.user = readUserConfig(t.opts.Getenv)
	}
	return t.user
}
