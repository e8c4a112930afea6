package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/pipeline/audit"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// callsHome is a server that connects to home.example through the proxy of its sandbox
// when it starts.
const callsHome = `#!/bin/bash
proxy=${HTTPS_PROXY##*/}
exec 3<>/dev/tcp/${proxy%:*}/${proxy#*:}
printf 'CONNECT home.example:443 HTTP/1.1\r\nHost: home.example:443\r\n\r\n' >&3
head -n 1 <&3 >&2
exec 3>&-
exec fixture
`

// A host that a server asks its sandbox for is named to the user and in the audit log,
// with the setting that would allow it, also if the server's process is shared.
func TestRefusedHostsAreLogged(t *testing.T) {
	for _, share := range []string{"--no-share", "--share"} {
		t.Run(share, func(t *testing.T) {
			dir := t.TempDir()
			state := filepath.Join(dir, "state")
			mcpkittest.WriteProgram(t, filepath.Join(dir, "listing"), []byte(callsHome))
			settings := "servers:\n  listing: {command: " + dir + "/listing, sandbox: {network: [other.example]}}\n"
			require.NoError(t, os.WriteFile(filepath.Join(dir, "c.yaml"), []byte(settings), 0o600))
			c := connectClient(t, dir, "--state", state, "--config", "c.yaml", share)
			answer := c.call(t, "listing__echo", `{"text":"hello"}`)
			if strings.Contains(answer, "needs level L2") {
				t.Skip("the sandbox of this machine cannot allow single hosts")
			}
			require.Contains(t, answer, "hello")
			const refusal = `network: home.example:443 is not on the list of allowed hosts; add "home.example" to sandbox.network of this server in toolroom.yaml`
			c.log.waitFor(t, "the sandbox of server listing refused "+refusal)
			c.close()
			var refused []string
			_, err := audit.Read(filepath.Join(state, "audit"), time.Time{}, func(e audit.Event) {
				if e.Event == "sandbox.refused" {
					refused = append(refused, e.Server+": "+e.Refused)
				}
			})
			require.NoError(t, err)
			require.Equal(t, []string{"listing: " + refusal}, refused)
			stopped, err := exec.Command("mcp-host", "stop", "--state", state).Output()
			require.NoError(t, err)
			require.Equal(t, share == "--share", strings.Contains(string(stopped), "process"), "%s", stopped)
		})
	}
}
