package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// check builds two clones of the repository's commit in different directories and
// compares the checksums of all files. The files of the first stay in out.
func check(repo, out, platforms string, cold bool) error {
	work, err := os.MkdirTemp("", "toolroom-dist-check-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	tool := filepath.Join(work, "dist"+filepath.Ext(os.Args[0]))
	if err := copyFile(os.Args[0], tool); err != nil {
		return err
	}
	// The second is a clone of the first, so that both have the same commit even if the
	// repository gets another meanwhile.
	first, second := filepath.Join(work, "first"), filepath.Join(work, "another directory", "second")
	for _, clone := range [][2]string{{repo, first}, {first, second}} {
		if _, err := output(repo, "git", "clone", "-q", "--no-local", clone[0], clone[1]); err != nil {
			return err
		}
	}
	var lists []string
	for i, dir := range []string{first, second} {
		target := out
		cmd := exec.Command(tool, "-repo", dir, "-platforms", platforms)
		cmd.Env = os.Environ()
		if i > 0 {
			target = filepath.Join(work, "out")
			cmd.Env = append(cmd.Env, "TZ=Pacific/Auckland", "LC_ALL=C", "USER=somebody")
			if cold {
				cmd.Env = append(cmd.Env, "GOCACHE="+filepath.Join(work, "cache"))
			}
		}
		cmd.Args = append(cmd.Args, "-out", target)
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("build %s: %w", dir, err)
		}
		list, err := os.ReadFile(filepath.Join(target, checksumsFile))
		if err != nil {
			return err
		}
		lists = append(lists, string(list))
	}
	return compare(lists[0], lists[1])
}

// compare returns an error that names the files that differ between two lists of
// checksums.
func compare(first, second string) error {
	if first == second && first != "" {
		fmt.Printf("both builds have the same %d files\n", strings.Count(first, "\n"))
		return nil
	}
	var errs []error
	lines := map[string]bool{}
	for line := range strings.Lines(first) {
		lines[line] = true
	}
	for line := range strings.Lines(second) {
		if !lines[line] {
			errs = append(errs, fmt.Errorf("the second build differs: %s", strings.TrimSpace(line)))
		}
		delete(lines, line)
	}
	for line := range lines {
		errs = append(errs, fmt.Errorf("the first build has: %s", strings.TrimSpace(line)))
	}
	return errors.Join(append(errs, errors.New("the two builds differ"))...)
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755)
}

// removeAll removes a directory with the files that the Go tool makes read-only.
func removeAll(dir string) {
	_ = filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(name, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}
