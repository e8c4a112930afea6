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

// maxStatus bounds what is read of git's answer.
const maxStatus = 8 << 20

// maxFilters bounds the content filters a repository may have set; beyond,
// git is not asked.
const maxFilters = 100

// statuses maps paths, relative to the listed directory, to a letter. A path
// that ends in a slash stands for everything below it. nil: git did not
// answer.
type statuses map[string]byte

// of returns the letter of a path, 0 for none.
func (s statuses) of(rel string) byte {
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

// statusCall is a call of git that is under way.
type statusCall struct {
	cancel context.CancelFunc
	done   chan statuses // nil: git is not asked
}

// startStatus asks git what changed in dir, if that is in a work tree. It
// does not wait.
func startStatus(ctx context.Context, box *sandbox.FS, dir string, wait time.Duration) *statusCall {
	ctx, cancel := context.WithTimeout(ctx, max(wait, 0))
	call := &statusCall{cancel: cancel}
	top, ok := workTree(dir)
	if wait < 0 || !ok {
		return call
	}
	git, ok := findGit(os.Getenv("PATH"), box.Roots())
	if !ok {
		return call
	}
	call.done = make(chan statuses, 1)
	go func() {
		found, err := gitStatus(ctx, git, top, dir)
		if err != nil {
			found = nil // no letters is a complete answer
		}
		call.done <- found
	}()
	return call
}

// wait returns what git said in its time, or nil.
func (c *statusCall) wait() statuses {
	if c.done == nil {
		return nil
	}
	found := <-c.done
	c.done = nil
	return found
}

// stop ends the call, git's processes included.
func (c *statusCall) stop() {
	c.cancel()
	c.wait()
}

// workTree finds the top of the work tree that dir is in, as git does.
func workTree(dir string) (string, bool) {
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

// findGit looks for git in the absolute directories of a PATH. One in a root
// that may be written to is not trusted: a model may have put it there.
func findGit(list string, roots []sandbox.Root) (string, bool) {
	name := "git"
	if runtime.GOOS == "windows" {
		name = "git.exe"
	}
	for _, dir := range filepath.SplitList(list) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		real, err := filepath.EvalSymlinks(file)
		if err != nil || writable(file, roots) || writable(real, roots) {
			continue
		}
		info, err := os.Stat(real)
		if err == nil && info.Mode().IsRegular() && (runtime.GOOS == "windows" || info.Mode()&0o111 != 0) {
			return file, true
		}
	}
	return "", false
}

func writable(file string, roots []sandbox.Root) bool {
	for _, root := range roots {
		rel, err := filepath.Rel(root.Path, file)
		if err == nil && filepath.IsLocal(rel) && !root.ReadOnly {
			return true
		}
	}
	return false
}

// gitStatus returns the letters for what is in dir.
func gitStatus(ctx context.Context, git, top, dir string) (statuses, error) {
	filters, err := runGit(ctx, git, dir, nil, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) { // 1: there are none
		return nil, err
	}
	env, err := withoutFilters(filters)
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

// withoutFilters returns the environment that empties the content filters a
// repository has set: git runs them to see whether a file changed, and who
// may write the repository's configuration is not who may run programs.
func withoutFilters(names []byte) ([]string, error) {
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

// runGit runs git with everything off that a repository could make it run,
// in a process group of its own that ends with ctx.
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
	ownGroup(cmd)
	err := cmd.Run()
	if err == nil {
		err = ctx.Err()
	}
	return out.Bytes(), err
}

// boundedBuffer takes at most maxStatus bytes.
type boundedBuffer struct{ bytes.Buffer }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxStatus {
		return 0, errors.New("git's answer is too long")
	}
	return b.Buffer.Write(p)
}

// parseStatus reads git status --porcelain=v1 -z --no-renames; prefix is the
// listed directory relative to the work tree's top.
func parseStatus(out []byte, prefix string) statuses {
	found := statuses{}
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

// statusLetter makes one letter of the state in the index and in the work
// tree.
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
