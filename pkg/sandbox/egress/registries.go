package egress

// registriesEntry is the entry that means all hosts of registries.
const registriesEntry = "registries"

// registries are the hosts from which package managers and build tools
// download. Each entry is here because a client fails without it. Users add
// other hosts with --net allow=registries,HOST.
var registries = [...]string{
	// Go: modules and tool chains, their checksums, and where the proxy and
	// the download page send clients for large files.
	"proxy.golang.org:443", "sum.golang.org:443", "go.dev:443", "dl.google.com:443", "storage.googleapis.com:443",
	// npm and yarn, and the headers that native modules are built with.
	"registry.npmjs.org:443", "registry.yarnpkg.com:443", "nodejs.org:443",
	// PyPI.
	"pypi.org:443", "files.pythonhosted.org:443",
	// Rust crates.
	"crates.io:443", "index.crates.io:443", "static.crates.io:443",
	// Debian and Ubuntu, whose archives are signed and read without TLS.
	"deb.debian.org", "security.debian.org", "archive.ubuntu.com", "*.archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com",
	// GitHub: git, archives, single files, releases.
	"github.com:443", "codeload.github.com:443", "api.github.com:443", "raw.githubusercontent.com:443",
	"objects.githubusercontent.com:443", "release-assets.githubusercontent.com:443",
}
