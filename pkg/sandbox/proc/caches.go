package proc

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// buildCaches are the variables by which build tools are told where to keep
// what they may make again, and the directories of Config.CacheDir for them.
// What commands put there only commands use: a cache of the user's that they
// could write would be run unconfined later.
var buildCaches = [...]struct{ variable, dir string }{
	{"GOCACHE", "go-build"},
	{"GOLANGCI_LINT_CACHE", "golangci-lint"},
	{"npm_config_cache", "npm"},
	{"YARN_CACHE_FOLDER", "yarn"},
	{"PIP_CACHE_DIR", "pip"},
	{"UV_CACHE_DIR", "uv"},
	{"CCACHE_DIR", "ccache"},
}

// moduleCaches hold what was downloaded. Without a network the user's are read,
// with one there are others to download into.
var moduleCaches = [...]struct{ variable, dir string }{
	{"GOMODCACHE", "go-mod"},
	{"CARGO_HOME", "cargo"},
}

// caches makes the directories of the build caches and returns the variables
// that lead to them.
func (r *Runner) caches() ([]string, error) {
	base := r.config.CacheDir
	if base == "" {
		return nil, nil
	}
	all := buildCaches[:]
	if r.config.reaches() {
		all = append(all[:len(all):len(all)], moduleCaches[:]...)
	}
	r.mu.Lock()
	made := r.cachesMade
	r.mu.Unlock()
	var env []string
	for _, cache := range all {
		dir := filepath.Join(base, cache.dir)
		if !made {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, toolerr.New(toolerr.ExecutionError, "the build caches cannot be made: %w", err)
			}
		}
		env = append(env, cache.variable+"="+dir)
	}
	r.mu.Lock()
	r.cachesMade = true
	r.mu.Unlock()
	return env, nil
}

// withCaches puts the variables of the build caches behind base, but for those
// that lead to where the commands may write anyway.
func withCaches(base, caches, writable []string) []string {
	all := base[:len(base):len(base)]
	for _, cache := range caches {
		name, _, _ := strings.Cut(cache, "=")
		usable := false
		for _, pair := range base {
			dir, ok := strings.CutPrefix(pair, name+"=")
			for _, w := range writable {
				usable = usable || ok && filepath.IsAbs(dir) && supervise.Beneath(w, filepath.Clean(dir))
			}
		}
		if !usable {
			all = append(all, cache)
		}
	}
	return all
}
