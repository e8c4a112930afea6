package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

const (
	homepage     = "https://github.com/toolroom-mcp/toolroom"
	organization = "toolroom maintainers"
	summary      = "MCP tools for coding agents that search, read, edit and run code within limits"
	allPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"
)

// A Platform is an operating system and an architecture, in Go's names.
type Platform struct{ OS, Arch string }

// String returns the platform as files are named: linux_amd64.
func (p Platform) String() string { return p.OS + "_" + p.Arch }

// program returns the file name of a program on the platform.
func (p Platform) program(name string) string {
	if p.OS == "windows" {
		return name + ".exe"
	}
	return name
}

// parsePlatforms parses a list such as linux/amd64,windows/arm64.
func parsePlatforms(list string) ([]Platform, error) {
	var platforms []Platform
	for _, text := range strings.Split(list, ",") {
		if !slices.Contains(strings.Split(allPlatforms, ","), text) {
			return nil, fmt.Errorf("unknown platform %q; the platforms are %s", text, allPlatforms)
		}
		system, arch, _ := strings.Cut(text, "/")
		if p := (Platform{system, arch}); !slices.Contains(platforms, p) {
			platforms = append(platforms, p)
		}
	}
	return platforms, nil
}

// A Release describes the files to build.
type Release struct {
	Repo      string // the clone
	Out       string // receives the files
	Version   string // v1.2.3, or a pseudo-version of Go for a commit without a tag
	Commit    string
	Time      time.Time // modification time of all files: SOURCE_DATE_EPOCH or the commit's time
	Platforms []Platform

	programs  []string               // mcp-ls, …, mcp-host
	binaries  map[Platform]string    // directories with the programs
	documents []file                 // licence, README, notices and completions
	hashes    map[string]string      // SHA-256 of the files in Out that other files name
	npmHashes map[string]programHash // by npm package
	mutex     sync.Mutex             // protects the maps while tasks run
}

// Number returns the version without the leading v.
func (r *Release) Number() string { return strings.TrimPrefix(r.Version, "v") }

// URL returns the address of a file of the release.
func (r *Release) URL(name string) string {
	return homepage + "/releases/download/" + r.Version + "/" + name
}

func (r *Release) has(p Platform) bool { return slices.Contains(r.Platforms, p) }

// output runs a command in a directory and returns its trimmed standard output.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// describe reads version, commit and time from git. The version is the tag of the
// commit; without a tag it is the pseudo-version that Go would give the commit.
// Changed files and new ones, which Go may compile too, add ".dirty" to the version.
func describe(repo string) (*Release, error) {
	commit, err := output(repo, "git", "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	stamp, err := output(repo, "git", "show", "-s", "--format=%ct", "HEAD")
	if err != nil {
		return nil, err
	}
	changes, err := output(repo, "git", "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	committed, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return nil, err
	}
	tag, _ := output(repo, "git", "describe", "--tags", "--abbrev=0", "--match", "v[0-9]*") // fails without a tag
	exact, _ := output(repo, "git", "describe", "--tags", "--exact-match", "--match", "v[0-9]*")
	version := versionOf(tag, exact, commit, time.Unix(committed, 0).UTC(), changes != "")
	r := &Release{Repo: repo, Version: version, Commit: commit, Time: time.Unix(committed, 0).UTC()}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
		}
		r.Time = time.Unix(seconds, 0).UTC()
	}
	r.programs, err = programs(repo)
	return r, err
}

// versionOf returns the version of a commit, given the last tag before it and the tag
// of the commit itself ("": none).
func versionOf(tag, exact, commit string, committed time.Time, dirty bool) string {
	if semver.IsValid(exact) && !dirty {
		return exact
	}
	if !semver.IsValid(tag) {
		tag = ""
	}
	version := module.PseudoVersion(semver.Major(tag), tag, committed, commit[:12])
	if dirty {
		version += ".dirty"
	}
	return version
}

// programs lists the programs that the repository has: mcp-NAME for each tool, and
// mcp-host.
func programs(repo string) ([]string, error) {
	mains, err := filepath.Glob(filepath.Join(repo, "tools", "*", "main.go"))
	if err != nil {
		return nil, err
	}
	if len(mains) == 0 {
		return nil, fmt.Errorf("%s has no tools: it is no clone of toolroom", repo)
	}
	var names []string
	for _, main := range mains {
		names = append(names, "mcp-"+filepath.Base(filepath.Dir(main)))
	}
	return append(names, "mcp-host"), nil
}

// emptyOutput makes an empty directory. It removes only a directory that an earlier
// build has made.
func emptyOutput(dir string) error {
	const mark = ".toolroom-dist"
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(dir, mark)); err != nil {
			return fmt.Errorf("%s is not empty and was not made by dist: remove it, or choose another with -out", dir)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, mark), nil, 0o644)
}

type task func() error

// inParallel runs the tasks, as many at a time as there are processors, and returns
// their errors.
func inParallel(tasks []task) error {
	errs := make([]error, len(tasks))
	slots := make(chan struct{}, runtime.NumCPU())
	var group sync.WaitGroup
	for i, do := range tasks {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = do()
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
