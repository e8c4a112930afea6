package proc

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// buildCaches lists the environment variables that name the caches of build
// tools, and the directories of Config.CacheDir to use for them. Only commands
// use these caches: if commands could write into the user's cache, the user
// would later run its content unconfined.
var buildCaches = [...]struct{ variable, dir string }{
	{"GOCACHE", "go-build"},
	{"GOLANGCI_LINT_CACHE", "golangci-lint"},
	{"npm_config_cache", "npm"},
	{"YARN_CACHE_FOLDER", "yarn"},
	{"PIP_CACHE_DIR", "pip"},
	{"UV_CACHE_DIR", "uv"},
	{"CCACHE_DIR", "ccache"},
}

// moduleCaches hold downloaded modules. Without network access, commands read
// the user's caches; with it, they download into their own.
var moduleCaches = [...]struct{ variable, dir string }{
	{"GOMODCACHE", "go-mod"},
	{"CARGO_HOME", "cargo"},
}

// caches makes the directories of the build caches and returns the variables
// that name them.
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

// withCaches appends the variables of the build caches to base, except those
// that base sets to a directory that commands may write.
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
