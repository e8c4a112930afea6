package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// count returns the number of repetitions of a test: usual, or the value of an
// environment variable.
func count(t *testing.T, variable string, usual int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "%s is a number", variable)
	return n
}

// TestManyProcessesOneFile: 64 servers, with a shared state directory, separate
// ones or none, each make 20 edits in one file concurrently, half of them at
// the same place. The file has exactly the edits reported as done.
func TestManyProcessesOneFile(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	const servers = 64
	bin := mcpkittest.Build(t, "./tools/edit")
	for _, alike := range []bool{true, false} {
		t.Run(map[bool]string{true: "one state", false: "several states"}[alike], func(t *testing.T) {
			f, rounds := newFixture(t), 20
			if !alike {
				rounds = 6
			}
			var text strings.Builder
			for s := range servers {
				fmt.Fprintf(&text, "s%02d:\n", s)
			}
			text.WriteString("end\n")
			f.write("shared.txt", []byte(text.String()))
			other := t.TempDir()
			clients := make([]*mcpkittest.Client, servers)
			for s := range clients {
				args := [][]string{{"--state", f.kept.Dir}, {"--state", other}, {"--no-state"}}[s%3]
				if alike {
					args = []string{"--state", f.kept.Dir}
				}
				clients[s] = mcpkittest.Start(t, bin, append(args, f.root)...)
			}
			done, refused := 0, map[toolerr.Code]int{}
			own, placed := make([]string, servers), map[string]bool{}
			for n := range rounds {
				ids := make([]string, servers)
				for s, c := range clients {
					args := map[string]any{"file_path": "shared.txt", "old_string": fmt.Sprintf("s%02d:%s\n", s, own[s]), "new_string": fmt.Sprintf("s%02d:%s %d\n", s, own[s], n)}
					if n%2 == 1 {
						args["old_string"], args["new_string"] = "end\n", fmt.Sprintf("from %02d %02d\nend\n", s, n)
					}
					ids[s] = c.Go("tools/call", mcpkittest.CallParams("edit", args))
				}
				for s, c := range clients {
					res, err := mcpkittest.ParseResult(c.Answer(ids[s]).Result)
					require.NoError(t, err)
					switch {
					case res.IsError:
						require.NotEqual(t, toolerr.Internal, toolerr.Code(res.Code), res.Text)
						refused[toolerr.Code(res.Code)]++
						continue
					case n%2 == 1:
						placed[fmt.Sprintf("from %02d %02d", s, n)] = true
					default:
						own[s] += fmt.Sprintf(" %d", n)
					}
					done++
				}
			}
			t.Logf("%d done, refused: %v", done, refused)
			if alike {
				// On an overloaded machine some calls wait too long for the
				// lock.
				require.Equal(t, servers*rounds, done+refused[toolerr.Locked], "all of them could be made: %v", refused)
				require.Greater(t, done, servers*rounds/2)
			}
			lines := strings.Split(strings.TrimSuffix(string(f.read("shared.txt")), "\n"), "\n")
			for s := range servers {
				require.Equal(t, fmt.Sprintf("s%02d:%s", s, own[s]), lines[s])
			}
			require.Equal(t, "end", lines[len(lines)-1])
			for _, line := range lines[servers : len(lines)-1] {
				require.True(t, placed[line], "%q was reported as done, once", line)
				delete(placed, line)
			}
			require.Empty(t, placed, "reported as done, and not in the file")
			requireOnly(t, f.root, "shared.txt")
		})
	}
}

// requireOnly asserts that a directory contains exactly these names.
func requireOnly(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		found = append(found, e.Name())
	}
	require.ElementsMatch(t, names, found)
}

// TestKilled: a process killed at any moment of an edit leaves the old or the
// new file, no lock, and nothing that the next edit does not clean up.
// EDIT_KILLS sets the number of kills.
func TestKilled(t *testing.T) {
	mcpkittest.SkipUnderRace(t)
	f := newFixture(t)
	bin := mcpkittest.Build(t, "./tools/edit")
	line := []byte("a line of a file that is large enough to be caught while it is written\n")
	content := append(bytes.Repeat(line, 30<<20/len(line)), "version 0\n"...)
	f.write("large.txt", content)
	edit := func(from, to int) *exec.Cmd {
		args, err := json.Marshal(map[string]any{"file_path": "large.txt", "old_string": fmt.Sprintf("version %d\n", from), "new_string": fmt.Sprintf("version %d\n", to)})
		require.NoError(t, err)
		cmd := exec.Command(bin, f.root, "--state", f.kept.Dir, "--call", string(args))
		cmd.Dir = f.root
		return cmd
	}
	took := time.Duration(0)
	for i := range 3 {
		started := time.Now()
		out, err := edit(i, i+1).CombinedOutput()
		require.NoError(t, err, string(out))
		took = max(took, time.Since(started))
	}
	rng := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	version, old, newCount, litter := 3, 0, 0, 0
	head := len(content) - len("version 0\n")
	for range count(t, "EDIT_KILLS", 10) {
		cmd := edit(version, version+1)
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(rng.Int64N(int64(took))))
		require.NoError(t, cmd.Process.Kill())
		if err := cmd.Wait(); err != nil {
			require.Equal(t, -1, cmd.ProcessState.ExitCode(), err)
		}
		now := f.read("large.txt")
		require.True(t, bytes.Equal(content[:head], now[:head]), "a mixture")
		switch tail := string(now[head:]); tail {
		case fmt.Sprintf("version %d\n", version):
			old++
		case fmt.Sprintf("version %d\n", version+1):
			newCount++
			version++
		default:
			require.Failf(t, "neither old nor new", "%q", tail)
		}
		entries, err := os.ReadDir(f.root)
		require.NoError(t, err)
		litter += len(entries) - 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), mcpkittest.MaxWait)
	defer cancel()
	last := edit(version, version+1)
	cmd := exec.CommandContext(ctx, last.Path, last.Args[1:]...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "no lock is left: %s", out)
	requireOnly(t, f.root, "large.txt")
	t.Logf("%d times the old, %d times the new content; %d files beside it, cleared since", old, newCount, litter)

	// A change recorded by a killed process but not written cannot be undone.
	cmd = exec.CommandContext(ctx, bin, f.root, "--state", f.kept.Dir, "--call", `{"file_path":"large.txt","undo":true}`)
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, fmt.Sprintf("version %d\n", version), string(f.read("large.txt")[head:]))
	require.NoError(t, filepath.WalkDir(f.kept.Dir, func(path string, entry os.DirEntry, err error) error {
		require.False(t, filepath.Base(filepath.Dir(path)) == "aside" && !entry.IsDir(), path)
		return err
	}))
}
