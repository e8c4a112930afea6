package trust_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config/trust"
)

func TestMain(m *testing.M) {
	if marker := os.Getenv("TRUST_TEST_MARKER"); marker != "" { // the program of the race below
		if _, err := os.Stat(marker); err != nil {
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func put(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755)) //nolint:gosec // a program
}

func TestTheStateOfAFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("links need a right there")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	state := func(path string) string {
		got, err := trust.StateOf(path)
		require.NoError(t, err)
		return got
	}
	require.Equal(t, trust.Absent, state(path))
	put(t, path, "text")
	require.Equal(t, trust.StateOfContent([]byte("text")), state(path))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(path, link))
	require.Equal(t, state(path), state(link), "of the object")
	system := filepath.Join(dir, "system")
	sh, err := filepath.EvalSymlinks("/bin/sh")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(sh, system))
	require.Equal(t, "link "+sh, state(system), "the system may update it")
	require.NoError(t, os.Remove(system))
	require.NoError(t, os.Symlink("nowhere", system))
	require.Equal(t, trust.Absent, state(system))
	_, err = trust.StateOf(dir)
	require.ErrorContains(t, err, "not a regular file")
}

func TestChangesAreTold(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.sh")
	put(t, path, "#!/bin/sh\n")
	file := trust.File{Path: path, State: trust.StateOfContent([]byte("#!/bin/sh\n")), Config: "/p/toolroom.yaml"}
	held, err := trust.Hold([]trust.File{file})
	require.NoError(t, err)
	require.Equal(t, path, held.StartPath(path), "a script finds its files by its path")
	require.NoError(t, held.Recheck())
	require.NoError(t, os.Rename(path, path+"~"))
	put(t, path, "#!/bin/sh\nevil\n")
	require.ErrorContains(t, held.Recheck(), "has changed since it was trusted")
	require.NoError(t, os.Rename(path+"~", path))
	held.Close()
	put(t, path, "#!/bin/sh\nevil\n")
	_, err = trust.Hold([]trust.File{file})
	require.ErrorContains(t, err, path+" has changed since it was trusted, so it is not used; inspect it, then run mcp-host config trust /p/toolroom.yaml")
	require.NoError(t, os.Remove(path))
	_, err = trust.Hold([]trust.File{file})
	require.ErrorContains(t, err, "was removed")
	absent := trust.File{Path: path, State: trust.Absent, Config: "c"}
	held, err = trust.Hold([]trust.File{absent})
	require.NoError(t, err)
	require.NoError(t, held.Recheck())
	put(t, path, "x")
	require.Error(t, held.Recheck())
	_, err = trust.Hold([]trust.File{absent})
	require.ErrorContains(t, err, "did not exist")
}

// A program that is replaced between check and start is not what runs.
func TestWhatWasCheckedRuns(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("programs are started by descriptor on Linux")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	text, err := os.ReadFile(self)
	require.NoError(t, err)
	path, good, evil := filepath.Join(dir, "server"), filepath.Join(dir, "good"), filepath.Join(dir, "evil")
	put(t, good, string(text))
	put(t, evil, "#!/bin/sh\ntouch "+dir+"/ran\n")
	require.NoError(t, os.Link(good, path))
	state, err := trust.StateOf(path)
	require.NoError(t, err)
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !over.Load(); i++ {
			os.Remove(path + "~")                                                 //nolint:errcheck // it may not be there
			os.Link(map[bool]string{true: good, false: evil}[i%2 == 0], path+"~") //nolint:errcheck // tried again
			os.Rename(path+"~", path)                                             //nolint:errcheck // likewise
		}
	}()
	held, started := 0, 0
	for i := 0; i < 3000 && started < 60; i++ {
		h, err := trust.Hold([]trust.File{{Path: path, State: state}})
		if err != nil {
			continue
		}
		held++
		cmd := exec.Command(path)
		cmd.Path, cmd.Env = h.StartPath(path), []string{"TRUST_TEST_MARKER=" + good}
		if cmd.Run() == nil {
			started++
		}
		h.Close()
	}
	over.Store(true)
	<-done
	require.Positive(t, started)
	require.Equal(t, held, started)
	require.NoFileExists(t, filepath.Join(dir, "ran"))
}
