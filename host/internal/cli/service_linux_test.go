package cli_test

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// unit returns the service unit for a state directory.
func unit(t *testing.T, format, state string) string {
	t.Helper()
	out, err := exec.Command("mcp-host", "service", "--format", format, "--state", state).Output()
	require.NoError(t, err)
	return string(out)
}

func TestServiceUnits(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), `odd $HOME %h "x" \ <&>`)
	host, err := exec.LookPath("mcp-host")
	require.NoError(t, err)
	want := []string{"resident", "--stay", "--state", state, "--config", os.DevNull}

	text := unit(t, "systemd", state)
	require.Contains(t, text, `" "resident" "--stay" "--state" "`+filepath.Dir(state)+`/odd $$HOME %%h \"x\" \\ <&>" "--config" "`)
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		file := filepath.Join(t.TempDir(), "toolroom.service")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		verify := exec.Command(analyze, "--user", "verify", file)
		verify.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
		out, err := verify.CombinedOutput()
		require.NoError(t, err, string(out))
		require.NotContains(t, string(out), file, "a warning")
	}

	var list struct {
		Strings []string `xml:"dict>string"`
		Command []string `xml:"dict>array>string"`
	}
	require.NoError(t, xml.Unmarshal([]byte(unit(t, "launchd", state)), &list))
	require.Equal(t, want, list.Command[1:])
	require.Equal(t, filepath.Base(host), filepath.Base(list.Command[0]))
	require.True(t, filepath.IsAbs(list.Command[0]))
	require.Equal(t, []string{"toolroom.shared"}, list.Strings)

	require.Error(t, exec.Command("mcp-host", "service", "--format", "runit", "--state", state).Run())
	require.NoDirExists(t, state, "it writes nothing")
}

// A service waits while another process runs, takes its place, and stays without hosts.
func TestTheServiceStays(t *testing.T) {
	t.Parallel()
	state, pids, args := sharing(t, "")
	first := exec.Command("mcp-host", "resident", "--state", state, "--config", os.DevNull, "--idle", "3s") // longer than the service waits between two looks
	var before transcript
	first.Stdout, first.Stderr = &before, &before
	require.NoError(t, first.Start())
	before.waitFor(t, "ready")

	service := exec.Command("mcp-host", "resident", "--stay", "--state", state, "--config", os.DevNull, "--idle", "50ms")
	var log transcript
	service.Stdout, service.Stderr = &log, &log
	require.NoError(t, service.Start())
	t.Cleanup(func() { service.Process.Kill() }) //nolint:errcheck // it has ended
	require.NoError(t, first.Wait(), "it ends without hosts")
	log.waitFor(t, "ready")
	require.Equal(t, service.Process.Pid, sharedStatus(t, state).PID)

	host := connectClient(t, "", args...)
	require.Contains(t, host.call(t, "fix__echo", `{"text":"b"}`), `\"b\"`)
	host.close()
	require.Eventually(t, func() bool { return len(sharedStatus(t, state).Servers) == 0 }, time.Minute, 10*time.Millisecond, "idle servers end")
	require.NotEmpty(t, started(t, pids))
	require.Equal(t, service.Process.Pid, sharedStatus(t, state).PID)
	require.True(t, mcpkittest.IsRunning(service.Process.Pid))
	require.NoError(t, service.Process.Signal(syscall.SIGTERM))
	require.NoError(t, service.Wait(), log.String())
	require.Nil(t, sharedStatus(t, state))
}
