// Package conventions determines the format for a new file from the
// .editorconfig and .gitattributes files of its directory and the parent
// directories within the roots.
//
// .editorconfig is read as editorconfig.org describes it (charset, end_of_line,
// insert_final_newline), .gitattributes as gitattributes(5) does (eol, text,
// binary, working-tree-encoding; without macro definitions and core.autocrlf).
// If both give a setting, .editorconfig wins, because an editor would have
// followed it.
package conventions

import (
	"path/filepath"
	"strings"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// editorConfig and gitAttributes are the names of the settings files that
	// are read.
	editorConfig  = ".editorconfig"
	gitAttributes = ".gitattributes"

	// maxDirectories bounds the directories searched.
	maxDirectories = 64
	// maxFileBytes bounds the bytes read of a settings file.
	maxFileBytes = 256 << 10
	// maxWork bounds the matching for one new file, see workBudget: whoever
	// wrote a repository's files must not make a call slow.
	maxWork = 1 << 27
)

// ForNewFile returns the format for a new file at an absolute path. Directories
// outside the roots, and files that cannot be read, are ignored.
func ForNewFile(fsys *sandbox.FS, path string) Settings {
	f := collector{work: maxWork}
	dir, relPath := filepath.Dir(path), filepath.Base(path)
	for range maxDirectories {
		if !f.addDir(fsys, dir, filepath.ToSlash(relPath)) {
			break
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			break
		}
		relPath = filepath.Join(filepath.Base(dir), relPath)
		dir = parent
	}
	return f.settings()
}

// collector collects settings from a file's directory upwards. A setting of a
// nearer directory is not replaced.
type collector struct {
	editorProps, gitAttrs map[string]string // properties of .editorconfig and attributes of git
	editorDone, gitDone   bool              // directories further up do not count
	work                  workBudget
}

// addDir adds the settings of dir. relPath is the new file's path relative to
// dir, with slashes. more is false if the directories above do not count, or if
// dir is outside the roots or cannot be opened.
func (f *collector) addDir(fsys *sandbox.FS, dir, relPath string) (more bool) {
	d, err := fsys.WithNearbySuggestions().OpenDir(dir)
	if err != nil {
		return toolerr.Is(err, toolerr.NotFound) // the directory does not exist yet
	}
	defer d.Close()
	if !f.editorDone {
		if text, ok := readFile(d, editorConfig); ok {
			var set map[string]string
			set, f.editorDone = parseEditorConfig(text, relPath, &f.work)
			f.editorProps = addMissing(f.editorProps, set)
		}
	}
	if !f.gitDone {
		if text, ok := readFile(d, gitAttributes); ok {
			f.gitAttrs = addMissing(f.gitAttrs, parseGitAttributes(text, relPath, &f.work))
		}
		if _, err := d.Lstat(".git"); err == nil {
			f.gitDone = true
			f.gitAttrs = addMissing(f.readInfoAttributes(fsys, dir, relPath), f.gitAttrs)
		}
	}
	return !f.editorDone || !f.gitDone
}

// readInfoAttributes returns the attributes from .git/info/attributes in dir
// for a path relative to dir; nil if there is no such directory. They take
// precedence over those of all .gitattributes files.
func (f *collector) readInfoAttributes(fsys *sandbox.FS, dir, relPath string) map[string]string {
	d, err := fsys.WithNearbySuggestions().OpenDir(filepath.Join(dir, ".git", "info"))
	if err != nil {
		return nil
	}
	defer d.Close()
	text, _ := readFile(d, "attributes")
	return parseGitAttributes(text, relPath, &f.work)
}

// readFile returns the beginning of a file, without a byte order mark; ok is
// false if it cannot be read.
func readFile(d *sandbox.Dir, name string) (text string, ok bool) {
	raw, _, err := d.ReadFile(name, nil, maxFileBytes)
	return strings.TrimPrefix(string(raw), "\ufeff"), err == nil
}

// addMissing adds the entries of more whose names settings does not have, and
// returns settings, or a new map if settings is nil.
func addMissing(settings, more map[string]string) map[string]string {
	if settings == nil {
		settings = map[string]string{}
	}
	for name, value := range more {
		if _, ok := settings[name]; !ok {
			settings[name] = value
		}
	}
	return settings
}
