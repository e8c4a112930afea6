package main

import (
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// networkFailurePattern matches the messages of programs without network
// access.
var networkFailurePattern = lazyregexp.New(`(?i)could not resolve|couldn't resolve|temporary failure in name resolution|network is unreachable|` +
	`name or service not known|no such host|\bEAI_AGAIN\b|\bENOTFOUND\b|\bENETUNREACH\b|getaddrinfo|failed to establish a new connection|` +
	`unable to resolve host|dial (tcp|udp)|could not connect to|unable to connect to|unable to access '(https?|git)|failed to lookup address|unknown host|UnknownHostException|socket: (operation not permitted|permission denied)`)

// networkHint names the flag that opens the network access that a command
// attempted; "" if none failed. text is the command's output.
func (r *runningCommand) networkHint(result proc.Result, text string) string {
	net := r.tool.config.Network
	if len(result.RefusedHosts) > 0 {
		var names []string
		for _, refused := range result.RefusedHosts[:min(len(result.RefusedHosts), 4)] {
			name := refused.Host + " " + refused.Why
			if refused.Opens != "" {
				name += " (--net allow=" + refused.Opens + ")"
			}
			names = append(names, name)
		}
		return "network: " + strings.Join(names, "; ")
	}
	if net.On || net.Allow != nil || result.Level == proc.Off || result.ExitCode == 0 || !networkFailurePattern().MatchString(text) {
		return ""
	}
	return "the network is off; the user can open it by starting the server with --net on, --net registries or --net allow=HOST"
}
