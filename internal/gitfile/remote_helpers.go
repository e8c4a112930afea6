package gitfile

import (
	"slices"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/lazyregexp"
)

// isHelperURL reports whether git would pass the address of a remote to a
// helper, a program git-remote-NAME in the user's PATH, or take it for an option.
// It reads an address as transport_get of git's transport.c does:
//
//	while (is_urlschemechar(p == url, *p))
//		p++;
//	if (starts_with(p, "::"))
//		helper = xstrndup(url, p - url);
//	…
//	} else if (!is_url(url) || starts_with(url, "file://") || … "git://" || … "ssh://" || … "git+ssh://" || … "ssh+git://") {
//		/* These are builtin smart transports; … */
//	} else {
//		/* Unknown protocol in URL. Pass to external handler. */
//
// Git has the helpers of http and ftp itself.
func isHelperURL(address string) bool {
	if strings.HasPrefix(address, "-") {
		return true
	}
	scheme := address[:len(schemeCharacters().FindString(address))]
	rest := address[len(scheme):]
	return strings.HasPrefix(rest, "::") || scheme != "" && strings.HasPrefix(rest, "://") && !slices.Contains(builtinSchemes, scheme)
}

// builtinSchemes lists the schemes of addresses for which git needs no other
// program. It compares letters exactly: HTTPS is unknown to it.
var builtinSchemes = []string{"http", "https", "ftp", "ftps", "file", "git", "ssh", "git+ssh", "ssh+git"}

// schemeCharacters matches what may be the scheme of an address, as
// is_urlschemechar of git's url.c.
var schemeCharacters = lazyregexp.New(`^(?:[A-Za-z0-9][A-Za-z0-9+.-]*)?`)
