package cli

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	"github.com/toolroom-mcp/toolroom/host/internal/core"
)

func (p *program) serviceCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "service",
		Short: "Print a service unit that keeps the shared servers' process running",
		Long: `service prints a unit for the service manager of the user: systemd, or launchd on
macOS. The service runs the process that starts the servers which hosts of this user
share (share_servers). So it already runs when a host needs it, and no client is its
parent process. The servers themselves still start when a host needs them, and end
three minutes after their last host. service writes nothing.

After a move of mcp-host or of its state directory, print the unit again.`,
		Example: "  mkdir -p ~/.config/systemd/user\n  mcp-host service > ~/.config/systemd/user/toolroom.service\n  systemctl --user enable --now toolroom",
		Args:    argumentCount(0, 0),
		RunE: func(*cobra.Command, []string) error {
			client, err := p.residentClient()
			if err != nil {
				return err
			}
			command := []string{client.Program, core.ResidentCommand, "--stay", "--state", client.State, "--config", os.DevNull}
			if strings.ContainsAny(strings.Join(command, ""), "\n\r") {
				return usageError("a unit cannot contain the line break in %q", command)
			}
			switch format {
			case "systemd":
				return p.printf("%s", systemdUnit(command))
			case "launchd":
				return p.printf("%s", launchdPlist(command))
			}
			return usageError("--format must be systemd or launchd, got %q", format)
		},
	}
	standard := "systemd"
	if runtime.GOOS == "darwin" {
		standard = "launchd"
	}
	cmd.Flags().StringVar(&format, "format", standard, "print the unit for `MANAGER`: systemd or launchd")
	return cmd
}

// systemdUnit returns a unit for systemd that runs a command. It restarts the command also
// after success: the process of an old version ends when its last host has ended, and the
// new version has the same path.
func systemdUnit(command []string) string {
	quote := strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`)
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = `"` + quote.Replace(word) + `"`
	}
	return `[Unit]
Description=Servers that the MCP hosts of this user share

[Service]
ExecStart=` + strings.Join(words, " ") + `
Restart=always
RestartSec=5

[Install]
WantedBy=default.target
`
}

// launchdPlist returns a property list for launchd that runs a command.
func launchdPlist(command []string) string {
	var words bytes.Buffer
	for _, word := range command {
		words.WriteString("\t\t<string>")
		xml.EscapeText(&words, []byte(word)) //nolint:errcheck // a buffer takes everything
		words.WriteString("</string>\n")
	}
	return fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key>
	<string>toolroom.shared</string>
	<key>ProgramArguments</key>
	<array>
%s	</array>
	<key>KeepAlive</key>
	<true/>
	<key>ThrottleInterval</key>
	<integer>5</integer>
</dict>
</plist>
`, words.String())
}
