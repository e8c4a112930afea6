package install_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
	"github.com/toolroom-mcp/toolroom/host/internal/install"
)

// A client that rewrites its file between two installations, as Claude Code does: the second
// copy has the entry of the first, so restoring it would leave that entry.
func TestRemovalAfterAChangeBetweenTwoInstallations(t *testing.T) {
	home, at := placeIn(t)
	state := filepath.Join(home, "state")
	file := filepath.Join(home, ".cursor/mcp.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(`{"starts": 1, "mcpServers": {"a": {"command": "x"}}}`), 0o600))
	cursor, _ := install.ByID("cursor")
	for _, root := range []string{"/p", "/q"} {
		s := hostServer
		s.Args = []string{"stdio", "--root", root}
		change, err := install.Plan(cursor, install.User, at, []install.Server{s}, false)
		require.NoError(t, err)
		require.NoError(t, change.Apply(bg, state))
		if root == "/p" {
			text := strings.Replace(string(change.After), `"starts": 1`, `"starts": 2`, 1)
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
	}
	removal, err := install.PlanRemoval(cursor, install.User, at, state)
	require.NoError(t, err)
	require.NoError(t, removal.Undo(bg, state))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, `{"starts": 2, "mcpServers": {"a": {"command": "x"}}}`, string(text))
	require.NoFileExists(t, file+install.BackupEnding)
	require.NoDirExists(t, state)
}

// A server of another project whose program has the name of one of toolroom's tools.
func TestProgramsOfOthersWithTheSameName(t *testing.T) {
	home, at := placeIn(t)
	cursor, _ := install.ByID("cursor")
	other, ours := t.TempDir(), t.TempDir()
	for _, program := range []string{filepath.Join(other, "mcp-grep"), filepath.Join(ours, "mcp-grep"), filepath.Join(ours, "mcp-host")} {
		for _, suffix := range []string{"", ".exe"} { // either system finds its own
			require.NoError(t, os.WriteFile(program+suffix, nil, 0o755))
		}
	}
	file := filepath.Join(home, ".cursor/mcp.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	text := fmt.Sprintf(`{"mcpServers": {"theirs": {"command": %q}, "gone": {"command": "/nothing/mcp-view"}, "toolroom-grep": {"command": %q}}}`, filepath.Join(other, "mcp-grep"), filepath.Join(ours, "mcp-grep"))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	found, err := install.Find(cursor, install.User, at)
	require.NoError(t, err)
	var names []string
	for _, one := range found {
		names = append(names, one.Name)
	}
	require.Equal(t, []string{"gone", "toolroom-grep"}, names)
	removal, err := install.PlanRemoval(cursor, install.User, at, filepath.Join(home, "state"))
	require.NoError(t, err)
	require.Contains(t, string(removal.After), `"theirs"`)
	named := hostServer
	named.Name = "theirs"
	_, err = install.Plan(cursor, install.User, at, []install.Server{named}, false)
	var conflict *install.ConflictError
	require.ErrorAs(t, err, &conflict)
}

// What is reported as installed is in the file, and what is recorded can be undone
// exactly, also when several processes install at once.
func TestInstallationsAtOnce(t *testing.T) {
	home, at := placeIn(t)
	state := filepath.Join(home, "state")
	cursor, _ := install.ByID("cursor")
	const rivals = 4
	for round := range 5 {
		var others []install.Client
		for _, c := range install.Clients() {
			if c.ID != "cursor" {
				others = append(others, c)
			}
		}
		failed := make([]error, rivals)
		otherErrors := make([]error, len(others))
		var all sync.WaitGroup
		var changes []*install.Change // all are planned before the first is made
		for i := range rivals {
			s := hostServer
			s.Name = fmt.Sprintf("toolroom%d", i)
			change, err := install.Plan(cursor, install.User, at, []install.Server{s}, false)
			require.NoError(t, err)
			changes = append(changes, change)
		}
		for _, c := range others {
			change, err := install.Plan(c, install.User, at, []install.Server{hostServer}, false)
			require.NoError(t, err)
			changes = append(changes, change)
		}
		for i, change := range changes {
			all.Go(func() {
				if err := change.Apply(bg, state); i < rivals {
					failed[i] = err
				} else {
					otherErrors[i-rivals] = err
				}
			})
		}
		all.Wait()
		for i := range others {
			require.NoError(t, otherErrors[i], others[i].ID)
		}
		found, err := install.Find(cursor, install.User, at)
		require.NoError(t, err)
		require.Len(t, found, 1, "the others were planned for a file that had changed")
		for i, err := range failed {
			if found[0].Name != fmt.Sprintf("toolroom%d", i) {
				require.ErrorContains(t, err, "try again", "round %d", round)
			} else {
				require.NoError(t, err)
			}
		}
		var removals []*install.Change
		for _, c := range append(others, cursor) {
			removal, err := install.PlanRemoval(c, install.User, at, state)
			require.NoError(t, err)
			removals = append(removals, removal)
		}
		for i, removal := range removals {
			all.Go(func() {
				if err := removal.Undo(bg, state); i < len(others) {
					otherErrors[i] = err
				} else {
					failed[0] = err
				}
			})
		}
		all.Wait()
		require.NoError(t, failed[0])
		for i := range others {
			require.NoError(t, otherErrors[i], others[i].ID)
		}
		left, err := os.ReadDir(home)
		require.NoError(t, err)
		require.Empty(t, left, "round %d", round)
	}
}

// A client's program that removes the old entry and then fails to add the new one.
func TestTheClientsOwnProgramFails(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("the program here is a shell script")
	}
	home, at := placeIn(t)
	bin := t.TempDir()
	script := "#!" + shell + "\ncase $2 in add-json) exit 3;; *) echo '{\"starts\": 2}' > \"$FILE\";; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(script), 0o755))
	file := filepath.Join(home, ".claude.json")
	t.Setenv("PATH", bin)
	t.Setenv("FILE", file)
	claude, _ := install.ByID("claude-code")
	state := filepath.Join(home, "state")
	for _, before := range []string{`{"starts": 2}`, `{"starts": 1, "mcpServers": {"toolroom": {"command": "/old/mcp-host", "env": {"A": "1"}}}}`} {
		require.NoError(t, os.WriteFile(file, []byte(before), 0o600))
		change, err := install.Plan(claude, install.User, at, []install.Server{hostServer}, false)
		require.NoError(t, err)
		require.ErrorContains(t, change.Apply(bg, state), "claude mcp add-json: exit status 3")
		require.NoDirExists(t, state)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if !strings.Contains(before, "toolroom") {
			require.Equal(t, before, string(text))
			require.NoFileExists(t, file+install.BackupEnding)
			continue
		}
		require.JSONEq(t, `{"starts": 2, "mcpServers": {"toolroom": {"command": "/old/mcp-host", "env": {"A": "1"}}}}`, string(text))
	}
}

// Zed's installation makes ~/.config; goose's file is in it, too, and is removed last.
func TestADirectoryForTwoClientsIsRemovedWithTheLast(t *testing.T) {
	home, at := placeIn(t)
	state := filepath.Join(home, "state")
	for _, step := range []string{"zed", "goose"} {
		client, _ := install.ByID(step)
		change, err := install.Plan(client, install.User, at, []install.Server{hostServer}, false)
		require.NoError(t, err)
		require.NoError(t, change.Apply(bg, state))
	}
	for _, step := range []string{"zed", "goose"} {
		client, _ := install.ByID(step)
		removal, err := install.PlanRemoval(client, install.User, at, state)
		require.NoError(t, err)
		require.NoError(t, removal.Undo(bg, state))
	}
	left, err := os.ReadDir(home)
	require.NoError(t, err)
	require.Empty(t, left)
}

// A crash during the change leaves a record, so that the removal finds the copy.
func TestTheChangeIsRecordedBeforeItIsMade(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("the program here is a shell script")
	}
	home, at := placeIn(t)
	bin := t.TempDir()
	state := filepath.Join(home, "state")
	script := "#!" + shell + "\nwhile read -r line; do echo \"$line\"; done < \"$STATE\" > \"$SEEN\"; exit 3\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), []byte(script), 0o755))
	t.Setenv("PATH", bin)
	t.Setenv("STATE", filepath.Join(state, "installed.json"))
	t.Setenv("SEEN", filepath.Join(home, "seen"))
	require.NoError(t, os.WriteFile(filepath.Join(home, ".claude.json"), []byte("{}"), 0o600))
	claude, _ := install.ByID("claude-code")
	change, err := install.Plan(claude, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	require.Error(t, change.Apply(bg, state))
	seen, err := os.ReadFile(filepath.Join(home, "seen"))
	require.NoError(t, err)
	require.Contains(t, string(seen), ".claude.json")
	require.NoDirExists(t, state)
}

// A process that is killed while it writes leaves a temporary file. The next installation
// and a removal remove it, and no other file of the directory.
func TestTemporaryFilesOfKilledProcessesAreRemoved(t *testing.T) {
	home, at := placeIn(t)
	state, dir := filepath.Join(home, "state"), filepath.Join(home, ".cursor")
	leave := func() {
		for _, name := range []string{".cursor/.mcp.json.toolroom-1", ".cursor/.mcp.json.before-toolroom.toolroom-2", "state/.installed.json.toolroom-3"} {
			require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(home, name), []byte("{"), 0o600))
		}
	}
	var others []string
	for _, name := range []string{".mcp.json-1", ".mcp.json.swp", ".other.json.toolroom-1", "mcp.json.toolroom-1"} {
		others = append(others, name)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	names := func(dir string) (found []string) {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, entry := range entries {
			found = append(found, entry.Name())
		}
		return found
	}
	leave()
	cursor, _ := install.ByID("cursor")
	change, err := install.Plan(cursor, install.User, at, []install.Server{hostServer}, false)
	require.NoError(t, err)
	require.NoError(t, change.Apply(bg, state))
	require.ElementsMatch(t, append([]string{"mcp.json"}, others...), names(dir))
	require.NotContains(t, names(state), ".installed.json.toolroom-3")

	leave()
	removal, err := install.PlanRemoval(cursor, install.User, at, state)
	require.NoError(t, err)
	require.NoError(t, removal.Undo(bg, state))
	require.ElementsMatch(t, others, names(dir))
}

// What WriteFile writes has the name that the test above uses.
func TestTemporaryFilesHaveTheProductsName(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "mcp.json")
	require.NoError(t, os.Mkdir(target, 0o700)) // the file cannot replace it
	require.ErrorContains(t, config.WriteFile(target, nil, 0o600, nil), ".mcp.json.toolroom-")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "it is removed after an error")
}

// An installation that replaces another can be killed before or after it writes the file.
// Both contents are then toolroom's, and the removal restores the one before the first.
func TestRemovalAfterAKilledSecondInstallation(t *testing.T) {
	for _, written := range []bool{false, true} {
		home, at := placeIn(t)
		state, file := filepath.Join(home, "state"), filepath.Join(home, ".cursor/mcp.json")
		original := `{"a": 1}` // taking the entry out would leave an empty object
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(original), 0o600))
		cursor, _ := install.ByID("cursor")
		plan := func(root string) *install.Change {
			s := hostServer
			s.Args = []string{"stdio", "--root", root}
			change, err := install.Plan(cursor, install.User, at, []install.Server{s}, false)
			require.NoError(t, err)
			return change
		}
		require.NoError(t, plan("/p").Apply(bg, state))
		second := plan("/q")
		records := filepath.Join(state, "installed.json")
		text, err := os.ReadFile(records)
		require.NoError(t, err)
		require.Contains(t, string(text), `"after":`)
		next := fmt.Sprintf(`"next": "%x", "after":`, sha256.Sum256(second.After))
		require.NoError(t, os.WriteFile(records, []byte(strings.Replace(string(text), `"after":`, next, 1)), 0o600))
		if written {
			require.NoError(t, os.WriteFile(file, second.After, 0o600))
		}

		require.NoError(t, plan("/r").Apply(bg, state))
		removal, err := install.PlanRemoval(cursor, install.User, at, state)
		require.NoError(t, err)
		require.NoError(t, removal.Undo(bg, state))
		restored, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Equal(t, original, string(restored))
		require.NoFileExists(t, file+install.BackupEnding)
	}
}
