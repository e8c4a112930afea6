package policy

import (
	"strings"
)

// networkClients are banned while the network is off. alias is among them
// because it gives them other names.
var networkClients = map[string]bool{
	"alias": true, "curl": true, "curlie": true, "wget": true, "wget2": true, "axel": true, "aria2c": true,
	"nc": true, "ncat": true, "netcat": true, "nc.openbsd": true, "nc.traditional": true, "socat": true, "telnet": true,
	"lynx": true, "w3m": true, "links": true, "elinks": true, "httpie": true, "http": true, "https": true, "xh": true,
	"http-prompt": true, "chrome": true, "firefox": true, "firefox-esr": true, "safari": true,
}

const networkAdvice = "Requests to this machine itself are fine (http://localhost:PORT/). " +
	"Do it without the network, or ask the user to start the server with --net on or --net allow=HOST."

func networkClient(base string) bool {
	name := strings.ToLower(base)
	return networkClients[name] || strings.HasPrefix(name, "google-chrome") || strings.HasPrefix(name, "chromium")
}

// network denies a client whose destination is not this machine.
func (s *scope) network(c call) {
	if !networkClient(c.base) {
		return
	}
	if c.base == "alias" {
		if len(c.args()) > 0 {
			s.check.deny(finding{
				command: s.at, name: c.base, rule: "network clients", why: "while the network is off no command may get another name",
				instead: "Write the command out where it is needed, or use a function.",
			})
		}
		return
	}
	switch onLoopback(c) {
	case yes:
	case maybe:
		s.doubt(false, "the port or path of a loopback URL is not known")
	default:
		s.check.deny(finding{
			command: s.at, name: c.base, rule: "network clients", why: "it is a network client and the network is off",
			instead: networkAdvice,
		})
	}
}

// applet denies what only busybox offers under these names.
func (s *scope) applet(fields []field) {
	if !s.check.policy.network && fields[0].is("ftpget", "ftpput", "tftp", "ssl_client", "whois", "sendmail") {
		s.check.deny(finding{
			command: s.at, name: "busybox " + fields[0].text, rule: "network clients",
			why: "it is a network client and the network is off", instead: networkAdvice,
		})
	}
}

func (s *scope) networkDevice(target field) {
	if s.check.policy.network {
		return
	}
	s.check.deny(finding{
		command: s.at, name: excerpt(strings.ReplaceAll(target.text, anything, "…")), rule: "network clients",
		why: "the redirection opens a network connection and the network is off", instead: networkAdvice,
	})
}
