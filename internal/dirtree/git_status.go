package dirtree

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

// maxStatusBytes bounds the output of git that is read.
const maxStatusBytes = 8 << 20

// maxFilters bounds the number of content filters that a repository may
// configure; with more, git is not run.
const maxFilters = 100

// gitStatuses maps paths, relative to the listed directory, to status letters.
// A path with a final slash applies to everything below it, "/" to all paths.
// nil means that git did not answer.
type gitStatuses map[string]byte

// letterFor returns the status letter of the path rel or, if it has none, of the nearest
// directory above it with a letter. It returns 0 without a letter.
func (s gitStatuses) letterFor(rel string) byte {
	if letter, ok := s[rel]; ok {
		return letter
	}
	for i := len(rel); i > 0; i = strings.LastIndexByte(rel[:i], '/') {
		if letter, ok := s[rel[:i]+"/"]; ok {
			return letter
		}
	}
	return s["/"]
}

// gitStatusCall is a call of git status that runs in a goroutine. The caller
// must call stop.
type gitStatusCall struct {
	cancel context.CancelFunc
	done   chan gitStatuses // nil: git is not run
}

// startGitStatus starts git status for dir and returns without waiting for it.
// git is not run if dir is in no work tree, if there is no usable git, or if
// wait is negative; it is killed after wait.
func startGitStatus(ctx context.Context, box *sandbox.FS, dir string, wait time.Duration) *gitStatusCall {
	ctx, cancel := context.WithTimeout(ctx, max(wait, 0))
	call := &gitStatusCall{cancel: cancel}
	top, ok := workTreeTop(dir)
	if wait < 0 || !ok {
		return call
	}
	git, ok := findGit(os.Getenv("PATH"), box.Roots())
	if !ok {
		return call
	}
	call.done = make(chan gitStatuses, 1)
	go func() {
		found, err := gitStatus(ctx, git, top, dir)
		if err != nil {
			found = nil // an empty answer, which is complete
		}
		call.done <- found
	}()
	return call
}

// wait returns git's answer once, or nil if git was not run, failed, or did not
// answer in time.
func (c *gitStatusCall) wait() gitStatuses {
	if c.done == nil {
		return nil
	}
	found := <-c.done
	c.done = nil
	return found
}

// stop kills git's processes and waits for the goroutine.
func (c *gitStatusCall) stop() {
	c.cancel()
	c.wait()
}

// workTreeTop returns the top of the work tree that contains dir: the nearest
// directory with an entry .git, as git finds it. ok is false without a work
// tree.
func workTreeTop(dir string) (top string, ok bool) {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

// findGit returns the path of git in the absolute directories of list, a PATH.
// It ignores a git inside a writable root, because a model may have written it.
// It returns false if no git is found.
func findGit(list string, roots []sandbox.Root) (path string, ok bool) {
	name := "git"
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		resolved, err := filepath.EvalSymlinks(file)
		if err != nil || isInWritableRoot(file, roots) || isInWritableRoot(resolved, roots) {
			continue
		}
		info, err := os.Stat(resolved)
		if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			return file, true
		}
	}
	return "", false
}

// isInWritableRoot reports whether an absolute path is in a root that is not
// read-only.
func isInWritableRoot(file string, roots []sandbox.Root) bool {
	for _, root := range roots {
		rel, err := filepath.Rel(root.Path, file)
		if err == nil && filepath.IsLocal(rel) && !root.ReadOnly {
			return true
		}
	}
	return false
}

// gitStatus runs git and returns the status letters of the files in dir. top is
// the top of the work tree. It returns an error if git fails or ctx ends.
func gitStatus(ctx context.Context, git, top, dir string) (gitStatuses, error) {
	filters, err := runGit(ctx, git, dir, nil, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // exit code 1: there are none
		return nil, err
	}
	env, err := envDisablingFilters(filters)
	if err != nil {
		return nil, err
	}
	out, err := runGit(ctx, git, dir, env, "status", "--porcelain=v1", "-z", "--no-renames",
		"--untracked-files=normal", "--ignore-submodules=all", "--", ".")
	if err != nil {
		return nil, err
	}
	prefix, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, err
	}
	return parseStatus(out, filepath.ToSlash(prefix)), nil
}

// envDisablingFilters returns environment variables that replace each content
// filter in names by an empty one. git runs filters to see whether a file
// changed, and a person who may write the repository's configuration need not
// be allowed to run programs. names are configuration keys, separated by NUL
// bytes. It returns an error for more than maxFilters.
func envDisablingFilters(names []byte) ([]string, error) {
	var env []string
	for name := range bytes.SplitSeq(names, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		n := len(env) / 2
		if n == maxFilters {
			return nil, errors.New("too many content filters")
		}
		value := ""
		if bytes.HasSuffix(name, []byte(".required")) {
			value = "false"
		}
		env = append(env, "GIT_CONFIG_KEY_"+strconv.Itoa(n)+"="+string(name), "GIT_CONFIG_VALUE_"+strconv.Itoa(n)+"="+value)
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(env)/2)), nil
}

// runGit runs git in dir and returns its output. It disables all features
// through which a repository could run programs. git runs in a separate process
// group, which is killed when ctx ends; runGit then returns the error of ctx.
func runGit(ctx context.Context, git, dir string, env []string, args ...string) ([]byte, error) {
	hardened := []string{
		"--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull,
		"-c", "protocol.allow=never", "-c", "protocol.ext.allow=never", "-c", "safe.bareRepository=explicit",
	}
	cmd := exec.CommandContext(ctx, git, append(hardened, args...)...)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + filepath.Dir(git), "LC_ALL=C", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"),
	}, env...)
	out := &boundedBuffer{}
	cmd.Stdout = out
	cmd.WaitDelay = 100 * time.Millisecond
	setProcessGroup(cmd)
	err := cmd.Run()
	if err == nil {
		err = ctx.Err()
	}
	return out.Bytes(), err
}

// boundedBuffer is a buffer that holds at most maxStatusBytes; a Write beyond
// that fails.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxStatusBytes {
		return 0, errors.New("git's answer is too long")
	}
	return b.Buffer.Write(p)
}

// parseStatus parses the output of git status --porcelain=v1 -z --no-renames.
// prefix is the path of the listed directory from the top of the work tree, "."
// for the top. Paths outside that directory are omitted.
func parseStatus(out []byte, prefix string) gitStatuses {
	found := gitStatuses{}
	for record := range strings.SplitSeq(string(out), "\x00") {
		if len(record) < 4 || record[2] != ' ' {
			continue
		}
		name := record[3:]
		if prefix != "." {
			inner, ok := strings.CutPrefix(name, prefix+"/")
			if !ok && strings.HasSuffix(name, "/") && strings.HasPrefix(prefix+"/", name) {
				inner, ok = "/", true // an untracked directory at or above the listed one
			}
			if !ok {
				continue
			}
			name = inner
		}
		if name == "" {
			name = "/"
		}
		if letter := statusLetter(record[0], record[1]); letter != 0 {
			found[name] = letter
		}
	}
	return found
}

// statusLetter combines git's status letters in the index and in the work tree
// to one letter. It returns 0 for states that are not shown, such as deleted
// files.
func statusLetter(index, tree byte) byte {
	switch {
	case index == '?':
		return '?'
	case index == 'U' || tree == 'U' || index == 'A' && tree == 'A' || index == 'D' && tree == 'D':
		return 'U'
	case index == 'A' || tree == 'A':
		return 'A'
	case index == 'T' || tree == 'T':
		return 'T'
	case index == 'M' || tree == 'M':
		return 'M'
	}
	return 0
}
