package policy

import (
	"strings"
)

// networkClients are the programs that are denied while the network is off.
// alias is one of them because it gives them other names.
var networkClients = map[string]bool{
	"alias": true, "curl": true, "curlie": true, "wget": true, "wget2": true, "axel": true, "aria2c": true,
	"nc": true, "ncat": true, "netcat": true, "nc.openbsd": true, "nc.traditional": true, "socat": true, "telnet": true,
	"lynx": true, "w3m": true, "links": true, "elinks": true, "httpie": true, "http": true, "https": true, "xh": true,
	"http-prompt": true, "chrome": true, "firefox": true, "firefox-esr": true, "safari": true,
}

// networkAdvice is the end of the messages that deny network access.
const networkAdvice = "Requests to http://localhost:PORT/ are not refused, but the sandbox lets them reach at most a server that the same command starts. " +
	"Do it without the network, or ask the user to start the server with --net on or --net allow=HOST."

// isNetworkClient reports whether a program is one of networkClients, which are
// denied while the network is off, in any case of letters.
func isNetworkClient(progName string) bool {
	name := strings.ToLower(progName)
	return networkClients[name] || strings.HasPrefix(name, "google-chrome") || strings.HasPrefix(name, "chromium")
}

// denyNetworkClient denies a network client, unless all its destinations are
// this machine. It ignores other programs. Call it only while the network is
// off.
func (s *shellText) denyNetworkClient(c simpleCommand) {
	if !isNetworkClient(c.progName) {
		return
	}
	if c.progName == "alias" {
		if len(c.args()) > 0 {
			s.eval.deny(finding{
				command: s.current, name: c.progName, rule: "network clients", why: "an alias can hide a network client and the network is off",
				instead: "Write the command out where it is needed, or use a function.",
			})
		}
		return
	}
	switch connectsOnlyToLoopback(c) {
	case yes:
	case maybe:
		s.addDoubt(false, "the port or path of a loopback URL is not known")
	default:
		s.eval.deny(finding{
			command: s.current, name: c.progName, rule: "network clients", why: "it is a network client and the network is off",
			instead: networkAdvice,
		})
	}
}

// denyNetworkApplet denies the network clients that only busybox has under
// these names, while the network is off. fields are the applet and its
// arguments.
func (s *shellText) denyNetworkApplet(fields []field) {
	if !s.eval.policy.network && fields[0].is("ftpget", "ftpput", "tftp", "ssl_client", "whois", "sendmail") {
		s.eval.deny(finding{
			command: s.current, name: "busybox " + fields[0].text, rule: "network clients",
			why: "it is a network client and the network is off", instead: networkAdvice,
		})
	}
}

// denyNetworkDevice denies a redirection to /dev/tcp or /dev/udp, while the
// network is off.
func (s *shellText) denyNetworkDevice(target field) {
	if s.eval.policy.network {
		return
	}
	s.eval.deny(finding{
		command: s.current, name: excerpt(strings.ReplaceAll(target.text, unknownText, "…")), rule: "network clients",
		why: "the redirection opens a network connection and the network is off", instead: networkAdvice,
	})
}
