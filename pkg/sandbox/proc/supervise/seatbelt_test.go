package supervise_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc/supervise"
)

// seatbeltRule is a rule of a profile.
type seatbeltRule struct {
	allow   bool
	names   []string
	filters []string // as (FILTER "VALUE"); none: every object
}

var (
	seatbeltHead   = regexp.MustCompile(`^\((allow|deny) ([a-z*\- ]+?) ?(\(|\)$)`)
	seatbeltFilter = regexp.MustCompile(`\((subpath|literal|global-name|target) ("(?:[^"\\]|\\.)*"|[a-z-]+)\)`)
)

// parseSeatbelt parses a profile: rules, each of them a list with operations and filters.
func parseSeatbelt(t *testing.T, text string) (rules []seatbeltRule) {
	t.Helper()
	text, versioned := strings.CutPrefix(text, "(version 1)\n")
	require.True(t, versioned)
	require.Equal(t, strings.Count(text, "("), strings.Count(text, ")"), "no path of the tests has parentheses")
	for _, one := range strings.Split(strings.ReplaceAll(text, "\n  ", " "), "\n") {
		if one == "" {
			continue
		}
		head := seatbeltHead.FindStringSubmatch(one)
		require.NotNil(t, head, one)
		r := seatbeltRule{allow: head[1] == "allow", names: strings.Fields(head[2])}
		for _, f := range seatbeltFilter.FindAllStringSubmatch(one, -1) {
			value := f[2]
			if value[0] == '"' {
				var err error
				value, err = strconv.Unquote(value)
				require.NoError(t, err, one)
			}
			r.filters = append(r.filters, f[1]+" "+value)
		}
		rules = append(rules, r)
	}
	return rules
}

// allows reports what a profile decides, as Seatbelt does: by the last rule that matches.
func allows(rules []seatbeltRule, operation, object string) (allowed bool) {
	for _, r := range rules {
		for _, name := range r.names {
			prefix, wild := strings.CutSuffix(name, "*")
			if name != "default" && operation != name && !(wild && strings.HasPrefix(operation, prefix)) {
				continue
			}
			matches := len(r.filters) == 0
			for _, f := range r.filters {
				kind, value, _ := strings.Cut(f, " ")
				matches = matches || kind == "subpath" && supervise.IsBeneath(value, object) || kind != "subpath" && value == object
			}
			if matches {
				allowed = r.allow
			}
		}
	}
	return allowed
}

func TestSeatbeltProfile(t *testing.T) {
	s := &supervise.Spec{
		Level: supervise.Seatbelt,
		Roots: []supervise.Root{{Path: "/w/project/vendor", ReadOnly: true}, {Path: "/w/project"}, {Path: "/w/docs", ReadOnly: true}, {Path: "/h/state/own"}},
		Temp:  "/private/t/1", Writable: []string{"/h/state/caches/p"}, Shown: []string{"/h/state/output"},
		Cover: []string{"/h/state"}, Mask: []string{"/h/.ssh", "/w/project/a/id_rsa", "/w/project/.env"}, Guard: []string{"/w/project/.git/hooks"},
	}
	text, err := supervise.SeatbeltProfile(s)
	require.NoError(t, err)
	rules := parseSeatbelt(t, text)
	for _, c := range []struct {
		operation, object string
		want              bool
	}{
		{"file-write-create", "/w/project/x", true}, {"file-write-data", "/w/project/a/b", true}, {"file-write-unlink", "/w/project/x", true},
		{"file-write-create", "/w/projects", false}, {"file-write-data", "/w/docs/x", false}, {"file-write-data", "/w/project/vendor/x", false},
		{"file-write-data", "/etc/hosts", false}, {"file-write-mode", "/h/.profile", false}, {"file-write-data", "/dev/null", true},
		{"file-write-data", "/dev/disk0", false}, {"file-write-create", "/private/t/1/x", true}, {"file-write-create", "/private/t/2/x", false},
		{"file-read-data", "/usr/bin/env", true}, {"file-read-data", "/h/.ssh/id_ed25519", false}, {"file-read-metadata", "/h/.ssh", false},
		{"file-write-create", "/h/.ssh/authorized_keys", false}, {"file-read-data", "/w/project/a/id_rsa", false}, {"file-read-data", "/w/project/.env", false},
		// A directory of a hidden or protected file cannot be moved away; others can.
		{"file-write-unlink", "/w/project/a", false}, {"file-write-unlink", "/w/project/a/id_rsa", false}, {"file-write-unlink", "/w/project/.git", false},
		{"file-write-unlink", "/w/project/.git/index.lock", true}, {"file-write-unlink", "/w/project/b", true},
		{"file-write-data", "/w/project/.git/hooks/pre-commit", false}, {"file-read-data", "/w/project/.git/hooks/pre-commit", true}, {"file-write-data", "/w/project/.git/HEAD", true},
		// The state of the server is hidden, except for what the command needs.
		{"file-read-data", "/h/state/approvals.db", false}, {"file-write-create", "/h/state/x", false}, {"file-read-data", "/h/state/output/1", true},
		{"file-write-data", "/h/state/output/1", false}, {"file-write-create", "/h/state/caches/p/x", true}, {"file-read-data", "/h/state/caches/q/x", false},
		{"file-read-metadata", "/h/state/caches", true}, {"file-read-data", "/h/state/caches", false}, {"file-write-create", "/h/state/own/x", true}, {"file-read-data", "/h/state/own/x", true},
		// No network, no services that act outside, no other processes.
		{"network-outbound", "/var/run/docker.sock", false}, {"network-outbound", "", false}, {"network-bind", "/private/t/1/s", true}, {"system-socket", "", false},
		{"mach-lookup", "com.apple.SecurityServer", false}, {"mach-lookup", "com.apple.pasteboard.1", false}, {"mach-lookup", "com.apple.system.logger", true},
		{"signal", "same-sandbox", true}, {"signal", "others", false}, {"process-exec", "/bin/ls", true}, {"appleevent-send", "", false}, {"job-creation", "", false},
		{"file-ioctl", "/dev/ttys001", false},
	} {
		require.Equal(t, c.want, allows(rules, c.operation, c.object), "%s %s\n%s", c.operation, c.object, text)
	}
	s.Network = true
	text, err = supervise.SeatbeltProfile(s)
	require.NoError(t, err)
	rules = parseSeatbelt(t, text)
	require.True(t, allows(rules, "network-outbound", ""))
	require.True(t, allows(rules, "mach-lookup", "com.apple.trustd.agent"))
	require.False(t, allows(rules, "mach-lookup", "com.apple.SecurityServer"))
	require.False(t, allows(rules, "file-read-data", "/h/.ssh/id_ed25519"))
}

// A path cannot end its string, and what cannot be named is refused.
func TestSeatbeltQuotesPaths(t *testing.T) {
	const dir = `/w/a"b\c (allow default)` + "é"
	text, err := supervise.SeatbeltProfile(&supervise.Spec{Roots: []supervise.Root{{Path: dir}}})
	require.NoError(t, err)
	require.Contains(t, text, `(allow file-write* (subpath "/w/a\"b\\c (allow default)é"))`+"\n")
	for _, path := range []string{"/w/a\nb", "/w/\x01", "/w/\xff", "w", "/w/\x7f"} {
		_, err := supervise.SeatbeltProfile(&supervise.Spec{Mask: []string{path}})
		require.ErrorContains(t, err, "cannot name", path)
	}
	_, err = supervise.SeatbeltProfile(&supervise.Spec{Mask: make100000Paths()})
	require.ErrorContains(t, err, "use a smaller root")
}

func make100000Paths() (paths []string) {
	for i := range 100_000 {
		paths = append(paths, "/nothing/"+strconv.Itoa(i))
	}
	return paths
}

// The profile names a directory as the file system lists it: macOS finds it under other
// names, too, but Seatbelt compares the listed one. Here a hard link has two names; the
// directory lists both.
func TestSeatbeltNamesAsOnDisk(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "Root"), 0o700))
	text, err := supervise.SeatbeltProfile(&supervise.Spec{Roots: []supervise.Root{{Path: filepath.Join(dir, "Root", "new", "x")}}})
	require.NoError(t, err)
	require.Contains(t, text, filepath.Join(dir, "Root", "new", "x"))
	require.Equal(t, "Root", supervise.OnDiskNameAmong("ROOT", []string{"other", "Root"}, func(name string) bool { return name == "Root" }))
	require.Equal(t, "root", supervise.OnDiskNameAmong("root", []string{"Root", "root"}, nil))
}
