package install

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Change is a change of one client's configuration, planned but not made.
type Change struct {
	Client Client
	Scope  Scope
	File   string   // path after links
	Before []byte   // content when the change was planned; nil: there is no file
	After  []byte   // content after the change; nil: the file is removed
	Names  []string // names of the entries that it adds, replaces or removes
	// Commands are calls of the client's own program. If there are any, they make
	// the change, and After is an approximation.
	Commands [][]string

	dir string // in which the commands run
}

// IsEmpty reports whether there is nothing to change.
func (c *Change) IsEmpty() bool {
	return bytes.Equal(c.Before, c.After) && (c.Before == nil) == (c.After == nil)
}

// ConflictError reports that File already has an entry called Name that does not start
// one of toolroom's programs.
type ConflictError struct{ Name, File string }

// Error names the entry and the file, and what to do.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%s already has a server called %q that is not one of toolroom's: give another name with --name, or replace it with --force", e.File, e.Name)
}

// maxFile bounds the size in bytes of a configuration that is edited.
const maxFile = 16 << 20

// readConfiguration returns the path of a configuration after links and its text: nil
// if there is no file, not nil for an empty file. It fails for a broken link, for what
// is not a regular file, and above maxFile.
func readConfiguration(path string) (file string, text []byte, err error) {
	file, err = filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return "", nil, fmt.Errorf("%s is a link to a file that does not exist: remove it, or create the file", path)
		}
		return path, nil, nil
	}
	if err != nil {
		return "", nil, err
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", nil, err
	}
	if !info.Mode().IsRegular() {
		return "", nil, fmt.Errorf("%s is not a regular file", file)
	}
	if info.Size() > maxFile {
		return "", nil, fmt.Errorf("%s has more than %d bytes", file, maxFile)
	}
	text, err = os.ReadFile(file)
	if err == nil && text == nil {
		text = []byte{}
	}
	return file, text, err
}

// isOurs reports whether an entry starts one of toolroom's programs.
func isOurs(entry any) bool { return toolroomCommand(entry) != "" }

// toolroomCommand returns the command of an entry, as it is written there, if it starts
// one of toolroom's programs, and "" if not.
func toolroomCommand(entry any) string {
	values, _ := entry.(map[string]any)
	var command string
	switch c := values["command"].(type) {
	case string:
		command = c
	case []any:
		if len(c) > 0 {
			command, _ = c[0].(string)
		}
	case map[string]any: // an older form of Zed's
		command, _ = c["path"].(string)
	case nil:
		command, _ = values["cmd"].(string)
	}
	base := command
	if i := strings.LastIndexAny(base, `/\`); i >= 0 {
		base = base[i+1:]
	}
	base = strings.TrimSuffix(strings.ToLower(base), ".exe")
	if !slices.Contains(Programs(), base) || isOtherProjectsProgram(command, base) {
		return ""
	}
	return command
}

// isOtherProjectsProgram reports whether a command that has the name of a tool's program is another
// project's program, for example one called mcp-grep: there is no mcp-host in its directory.
// A program that is not found can be an older version of toolroom's, so it is not foreign.
func isOtherProjectsProgram(command, base string) bool {
	if base == hostProgram {
		return false
	}
	path, err := exec.LookPath(command)
	if err != nil {
		return false
	}
	dirs := []string{filepath.Dir(path)}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		dirs = append(dirs, filepath.Dir(real))
	}
	return !slices.ContainsFunc(dirs, func(dir string) bool { return exists(filepath.Join(dir, hostProgram+filepath.Ext(path))) })
}

// hostProgram is the name of the gateway's program.
const hostProgram = "mcp-host"

// Programs returns the names of toolroom's programs, mcp-host first.
func Programs() []string {
	return []string{hostProgram, "mcp-ls", "mcp-glob", "mcp-grep", "mcp-view", "mcp-edit", "mcp-replace", "mcp-bash", "mcp-dispatch_agent"}
}

// Plan returns the change that adds servers to a client's configuration; it writes
// nothing. An entry that does not start one of toolroom's programs is replaced with
// force, and is a *ConflictError without. In an entry of toolroom's, only the fields
// that differ change: what the user added to it, such as env, stays.
func Plan(c Client, scope Scope, env Environment, servers []Server, force bool) (*Change, error) {
	change, err := newChange(c, scope, env)
	if err != nil {
		return nil, err
	}
	for _, s := range servers {
		present, err := c.format.entries(change.After, c.member)
		if err != nil {
			return nil, fileError(change.File, err)
		}
		entry, had := c.entry(s), present[s.Name]
		if had != nil {
			if !isOurs(had) && !force {
				return nil, &ConflictError{s.Name, change.File}
			}
			if isOurs(had) {
				entry = withMissingFields(entry, had)
			}
			if equalEntry(had, entryMap(entry)) {
				continue
			}
		}
		if change.After, err = c.format.setChecked(change.After, c.member, s.Name, entry); err != nil {
			return nil, fileError(change.File, err)
		}
		change.Names = append(change.Names, s.Name)
		if c.usesCommand() {
			if had != nil {
				change.Commands = append(change.Commands, c.removeCommand(scope, s.Name))
			}
			text := renderJSON(entry, "", "", "")
			change.Commands = append(change.Commands, []string{c.command, "mcp", "add-json", "--scope", string(scope), s.Name, text})
		}
	}
	return change, nil
}

// usesCommand reports whether the client's configuration is changed with its own
// program: it has one, and it is found in PATH.
func (c Client) usesCommand() bool {
	if c.command == "" {
		return false
	}
	_, err := exec.LookPath(c.command)
	return err == nil
}

// removeCommand returns the command line that removes an entry with the client's own
// program.
func (c Client) removeCommand(scope Scope, name string) []string {
	return []string{c.command, "mcp", "remove", "--scope", string(scope), name}
}

// withMissingFields returns the entry with the fields of the decoded entry had that it
// lacks.
func withMissingFields(entry []field, had any) []field {
	values, _ := had.(map[string]any)
	for _, name := range sortedKeys(values) {
		if !slices.ContainsFunc(entry, func(f field) bool { return f.name == name }) {
			entry = append(entry, field{name, values[name]})
		}
	}
	return entry
}

// PlanRemoval returns the change that removes all of toolroom's entries from a client's
// configuration; it writes nothing. If nobody has changed the file since the installation
// that the directory state records, the file's former content is restored exactly. It
// returns an error if the file cannot be read or edited.
func PlanRemoval(c Client, scope Scope, env Environment, state string) (*Change, error) {
	change, err := newChange(c, scope, env)
	if err != nil || change.Before == nil {
		return change, err
	}
	installed, err := Find(c, scope, env)
	if err != nil {
		return nil, err
	}
	for _, one := range installed {
		if change.After, err = c.format.removeChecked(change.After, c.member, one.Name); err != nil {
			return nil, fileError(change.File, err)
		}
		change.Names = append(change.Names, one.Name)
	}
	if len(change.Names) > 0 && !change.planRestore(state) && c.usesCommand() {
		for _, name := range change.Names {
			change.Commands = append(change.Commands, c.removeCommand(scope, name))
		}
	}
	return change, nil
}

// newChange reads the client's configuration and returns a change whose After is still
// equal to Before. It fails if the client has no configuration in this scope.
func newChange(c Client, scope Scope, env Environment) (*Change, error) {
	path, ok := c.File(scope, env)
	if !ok {
		return nil, fmt.Errorf("%s has no configuration for the scope %s", c.Title, scope)
	}
	file, text, err := readConfiguration(path)
	if err != nil {
		return nil, err
	}
	return &Change{Client: c, Scope: scope, File: file, Before: text, After: text, dir: env.Dir}, nil
}

// fileError returns err with the name of the file, and says that nothing was changed.
func fileError(file string, err error) error {
	return fmt.Errorf("%s: %w; nothing was changed", file, err)
}

// Installed is an entry that starts one of toolroom's programs.
type Installed struct {
	Client  Client
	Scope   Scope
	File    string // path after links
	Name    string // key of the entry
	Program string // command as written in the entry, with or without a directory
}

// Find returns the entries in a client's configuration that start one of toolroom's
// programs, sorted by name. It returns none if the file does not exist, and an error if
// the client has no configuration in this scope.
func Find(c Client, scope Scope, env Environment) ([]Installed, error) {
	change, err := newChange(c, scope, env)
	if err != nil || change.Before == nil {
		return nil, err
	}
	entries, err := c.format.entries(change.Before, c.member)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", change.File, err)
	}
	var found []Installed
	for _, name := range sortedKeys(entries) {
		if program := toolroomCommand(entries[name]); program != "" {
			found = append(found, Installed{c, scope, change.File, name, program})
		}
	}
	return found, nil
}
