package mcpkittest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// firstModTime is the modification time of a script's first file.
var firstModTime = time.Date(2025, 1, 1, 12, 0, 0, 0, time.UTC)

// createFiles creates the root and state directories in dir, writes the files,
// and runs section setup.
func (s *script) createFiles(dir string) error {
	s.root, s.state = filepath.Join(dir, "root"), filepath.Join(dir, "state")
	for _, name := range []string{s.root, filepath.Join(s.state, "home")} {
		if err := os.MkdirAll(name, 0o755); err != nil {
			return err
		}
	}
	s.setReplacers(s.root, s.state)
	for i, file := range s.archive.Files {
		if slices.Contains(sectionNames, file.Name) {
			if _, twice := s.sections[file.Name]; twice {
				return fmt.Errorf("section %s is there twice", file.Name)
			}
			s.sections[file.Name] = string(file.Data)
			continue
		}
		name, err := s.pathInRoot(file.Name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, file.Data, 0o644); err != nil {
			return err
		}
		at := firstModTime.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(name, at, at); err != nil {
			return err
		}
	}
	for _, line := range s.sectionLines("setup") {
		if err := s.runSetupLine(line); err != nil {
			return fmt.Errorf("setup %s: %w", line, err)
		}
	}
	return nil
}

// setReplacers sets expandVars and restoreVars for the paths of the two
// directories.
func (s *script) setReplacers(root, state string) *script {
	slashRoot, slashState := filepath.ToSlash(root), filepath.ToSlash(state)
	s.expandVars = strings.NewReplacer("$ROOT", slashRoot, "$STATE", slashState)
	s.restoreVars = strings.NewReplacer(root, "$ROOT", slashRoot, "$ROOT", state, "$STATE", slashState, "$STATE")
	return s
}

// pathInRoot returns the path of name below the root. It fails for names
// outside.
func (s *script) pathInRoot(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("the file %s is not below the root", name)
	}
	return filepath.Join(s.root, filepath.FromSlash(name)), nil
}

// runSetupLine runs one line of section setup, such as "mkdir NAME". Names are relative
// to the root. It returns an error for an unknown command.
func (s *script) runSetupLine(line string) error {
	verb, rest, _ := strings.Cut(line, " ")
	first, arg, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if verb == "chmod" {
		first, arg = arg, first
	}
	name, err := s.pathInRoot(first)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch verb {
	case "mkdir":
		return os.MkdirAll(name, 0o755)
	case "symlink":
		return os.Symlink(arg, name)
	case "hardlink":
		old, err := s.pathInRoot(arg)
		if err != nil {
			return err
		}
		return os.Link(old, name)
	case "chmod":
		mode, err := strconv.ParseUint(arg, 8, 32)
		if err != nil {
			return err
		}
		return os.Chmod(name, os.FileMode(mode))
	case "mtime":
		at, err := time.Parse(time.RFC3339, arg)
		if err != nil {
			return err
		}
		return os.Chtimes(name, at, at)
	case "base64":
		data, err := base64.StdEncoding.DecodeString(arg)
		if err != nil {
			return err
		}
		return os.WriteFile(name, data, 0o644)
	case "size":
		return makeSparse(name, arg)
	case "repeat":
		count, text, _ := strings.Cut(arg, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return err
		}
		return os.WriteFile(name, bytes.Repeat([]byte(text+"\n"), n), 0o644)
	case "crlf":
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return os.WriteFile(name, bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")), 0o644)
	}
	return fmt.Errorf("no such verb %s", verb)
}

// makeSparse makes a sparse file of size bytes.
func makeSparse(name, size string) error {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := f.Truncate(n); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
