package policy

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// clientGrammars are the options with a value of the clients that may connect
// to loopback. The value of an option that is missing here is taken for a
// destination and refused: that is the safe side.
var clientGrammars = map[string]grammar{
	"curl": {
		short: "AbcCdDeEFHmoPQrtTuUwXyYz",
		long: "url request header data data-raw data-binary data-urlencode data-ascii json form form-string output user user-agent max-time " +
			"connect-timeout retry retry-delay retry-max-time write-out cookie cookie-jar upload-file referer cacert cert key range " +
			"limit-rate max-redirs output-dir dump-header url-query oauth2-bearer stderr trace trace-ascii speed-limit speed-time",
	},
	"wget": {
		short: "oOaPtTQUeDARIXlwB",
		long: "output-file output-document append-output directory-prefix tries timeout user-agent header post-data post-file method " +
			"body-data body-file user password quota wait limit-rate level accept reject load-cookies save-cookies",
	},
	"http": {short: "asopAv", long: "auth auth-type session output print style timeout verify pretty"},
	"nc":   {short: "wiIOopqsTVX"},
}

// divertingOptions are options that send a request elsewhere than its URL says,
// read more URLs, or run something.
var divertingOptions = []string{
	"-x", "--proxy", "--preproxy", "--socks4", "--socks4a", "--socks5", "--socks5-hostname", "--connect-to", "--resolve", "-K",
	"--config", "--dns-servers", "--doh-url", "--interface", "-i", "--input-file", "-e", "--execute", "-c", "--exec", "--sh-exec",
	"--use-askpass", "--referer-url", "--base", "-B", "--proxy1.0", "-L", "--proxy-server", "-P", "-X",
}

// connectsOnlyToLoopback says whether all destinations of a network client are
// this machine: maybe if only the text after the host is not known, no if there
// is no destination.
func connectsOnlyToLoopback(c simpleCommand) answer {
	name, list := c.progName, divertingOptions
	switch name {
	case "curlie":
		name = "curl"
	case "wget2":
		name = "wget"
	case "https", "httpie", "xh":
		name = "http"
	case "ncat", "netcat", "nc.openbsd", "nc.traditional", "telnet":
		name = "nc"
	case "socat", "http-prompt":
		return no
	}
	switch name {
	case "curl": // where these mean --request, --include, --location, --cookie-jar, …
		list = slices.DeleteFunc(slices.Clone(list), func(o string) bool { return slices.Contains([]string{"-i", "-e", "-c", "-L", "-P", "-X", "-B"}, o) })
	case "wget":
		list = slices.DeleteFunc(slices.Clone(list), func(o string) bool { return slices.Contains([]string{"-c", "-x", "-L", "-P", "-X"}, o) })
	}
	destinations, ok := destinationOperands(name, c.args(), list)
	if !ok || len(destinations) == 0 {
		return no
	}
	result := yes
	for _, d := range destinations {
		result = min(result, isLoopbackURL(d))
	}
	return result
}

// destinationOperands returns the operands that are hosts or URLs. ok is false
// if an option diverts requests or operands are not known.
func destinationOperands(name string, args []field, divertingOptions []string) (hosts []field, ok bool) {
	g := clientGrammars[name]
	var operands []field
	for len(args) > 0 {
		options, rest, sure := g.leadingOptions(args)
		for _, o := range options {
			if slices.Contains(divertingOptions, o.name) {
				return nil, false
			}
			if o.name == "--url" {
				operands = append(operands, o.value)
			}
		}
		if !sure && (rest[0].maybeMany || strings.HasPrefix(rest[0].text, unknownText)) {
			return nil, false
		}
		if len(rest) == 0 {
			break
		}
		operands, args = append(operands, rest[0]), rest[1:]
	}
	switch {
	case name == "nc" && len(operands) > 0: // host, then ports
		return operands[:1], true
	case name == "http":
		if len(operands) > 1 && strings.Trim(operands[0].text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == "" {
			operands = operands[1:]
		}
		return operands[:min(1, len(operands))], true
	}
	return operands, true
}

// isLoopbackURL says whether a URL, host or host:port is this machine.
func isLoopbackURL(f field) answer {
	known, _, cut := strings.Cut(f.text, unknownText)
	text := known
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	_, after, _ := strings.Cut(text, "://")
	authority, _, slashed := strings.Cut(after, "/")
	switch {
	case strings.ContainsAny(f.text, "\\ \t\n"):
		return no
	case cut && !slashed:
		// http://localhost:$PORT: the text after it may still change the host.
		host, ok := strings.CutSuffix(authority, ":")
		if ok && isLoopbackHost(host) {
			return maybe
		}
		return no
	case strings.Contains(authority, "@"):
		return no
	}
	u, err := url.Parse("http://" + authority)
	if err != nil || u.Hostname() == "" && !strings.HasPrefix(authority, ":") {
		return no
	}
	if strings.HasPrefix(authority, ":") { // httpie's :8080
		return yes
	}
	if isLoopbackHost(u.Hostname()) {
		return yes
	}
	return no
}

// isLoopbackHost reports whether a host name or address is this machine:
// localhost, a name below it, a loopback or unspecified address.
func isLoopbackHost(host string) bool {
	host = strings.ToLower(strings.Trim(strings.TrimSuffix(host, "."), "[]"))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && (address.Unmap().IsLoopback() || address.IsUnspecified())
}
