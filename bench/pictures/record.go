package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
)

// record runs the commands of a script, one a line, with the files of the
// script in a home directory and the programs of a directory first in PATH. It
// returns the commands and what they print. The commands that skip reports are
// left out. The home directory is written as ~.
func record(script, programs string, skip func(command string) bool) (string, error) {
	archive, err := txtar.ParseFile(script)
	if err != nil {
		return "", err
	}
	programs, err = filepath.Abs(programs)
	if err != nil {
		return "", err
	}
	home, err := os.MkdirTemp("", "toolroom-session-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	if home, err = filepath.EvalSymlinks(home); err != nil {
		return "", err
	}
	if err := writeFiles(home, archive.Files); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, command := range strings.Split(strings.TrimSpace(string(archive.Comment)), "\n") {
		if strings.HasPrefix(command, "#") || skip != nil && skip(command) {
			continue
		}
		if out.Len() > 0 {
			out.WriteString("\n")
		}
		run := exec.Command("bash", "-c", command)
		run.Dir = filepath.Join(home, "shop")
		run.Env = []string{"HOME=" + home, "PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), "LC_ALL=C"}
		printed, err := run.CombinedOutput()
		if _, failed := err.(*exec.ExitError); err != nil && !failed {
			return "", err
		}
		fmt.Fprintf(&out, "%s%s\n%s", promptMark, command, printed)
	}
	return strings.ReplaceAll(out.String(), home, "~"), nil
}

// writeFiles writes the files below a directory, the first with the newest
// time: tools list files in that order.
func writeFiles(dir string, files []txtar.File) error {
	newest := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for i, f := range files {
		name := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(name, f.Data, 0o600); err != nil {
			return err
		}
		modified := newest.Add(-time.Duration(i) * time.Second)
		if err := os.Chtimes(name, modified, modified); err != nil {
			return err
		}
	}
	return nil
}
