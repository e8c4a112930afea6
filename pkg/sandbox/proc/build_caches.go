package proc

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
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

// moduleCaches lists, like buildCaches, the caches of downloaded modules.
// Without network access, commands read the user's caches; with it, they
// download into their own.
var moduleCaches = [...]struct{ variable, dir string }{
	{"GOMODCACHE", "go-mod"},
	{"CARGO_HOME", "cargo"},
}

// makeBuildCaches makes the directories of the build caches for commands with these
// roots. It returns their common directory and the variables that name them, nothing
// without Config.CacheDir. Caches are not shared with other roots: a command could put
// code there that another project's build uses. It returns EXECUTION_ERROR if a
// directory cannot be made.
func (r *Runner) makeBuildCaches(roots []supervise.Root) (cacheDir string, env []string, err error) {
	if r.config.CacheDir == "" {
		return "", nil, nil
	}
	cacheDir = filepath.Join(r.config.CacheDir, cacheDirName(roots))
	all := buildCaches[:]
	if r.config.hasNetwork() {
		all = append(all[:len(all):len(all)], moduleCaches[:]...)
	}
	r.mu.Lock()
	made := r.cachesMade[cacheDir]
	r.mu.Unlock()
	for _, cache := range all {
		dir := filepath.Join(cacheDir, cache.dir)
		if !made {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return "", nil, toolerr.New(toolerr.ExecutionError, "the build caches cannot be made: %w", err)
			}
		}
		env = append(env, cache.variable+"="+dir)
	}
	r.mu.Lock()
	if r.cachesMade == nil {
		r.cachesMade = map[string]bool{}
	}
	r.cachesMade[cacheDir] = true
	r.mu.Unlock()
	return cacheDir, env, nil
}

// cacheDirName returns the name of the common directory, a hash, of the caches
// for commands with these roots. Only the writable roots count.
func cacheDirName(roots []supervise.Root) string {
	var paths []string
	for _, root := range roots {
		if !root.ReadOnly {
			paths = append(paths, root.Path)
		}
	}
	slices.Sort(paths)
	sum := sha256.Sum256([]byte(strings.Join(paths, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// appendMissingCacheVars returns base, variables as NAME=value, with caches, the
// variables of the build caches, appended, except those that base sets to a
// directory that commands may write.
func appendMissingCacheVars(base, caches, writable []string) []string {
	all := base[:len(base):len(base)]
	for _, cache := range caches {
		name, _, _ := strings.Cut(cache, "=")
		usable := false
		for _, pair := range base {
			dir, ok := strings.CutPrefix(pair, name+"=")
			for _, w := range writable {
				usable = usable || ok && filepath.IsAbs(dir) && supervise.IsBeneath(w, filepath.Clean(dir))
			}
		}
		if !usable {
			all = append(all, cache)
		}
	}
	return all
}
