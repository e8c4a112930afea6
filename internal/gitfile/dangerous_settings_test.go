package gitfile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
)

// documentedKey is a line of testdata/keys.tsv.
type documentedKey struct {
	name, value string
	runs        bool
}

func documentedKeys(t testing.TB) (keys []documentedKey) {
	raw, err := os.ReadFile(filepath.Join("testdata", "keys.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(strings.TrimSpace(line), "\t")
		require.GreaterOrEqual(t, len(fields), 2, line)
		k := documentedKey{name: fields[1], runs: fields[0] == "runs", value: "./evil"}
		if len(fields) == 3 {
			k.value = fields[2]
		}
		require.Contains(t, []string{"runs", "-"}, fields[0])
		keys = append(keys, k)
	}
	return keys
}

var placeholder = regexp.MustCompile(`<[^>]*>|\*`)

// config returns a file with the key set.
func (k documentedKey) config() string {
	name := placeholder.ReplaceAllString(k.name, "x")
	first, last := strings.Index(name, "."), strings.LastIndex(name, ".")
	section := name[:first]
	if last > first {
		section += ` "` + name[first+1:last] + `"`
	}
	return "[" + section + "]\n\t" + name[last+1:] + " = " + k.value + "\n"
}

// Each key that git documents is classified, and found or not found.
func TestEveryKeyOfGitIsClassified(t *testing.T) {
	keys := documentedKeys(t)
	require.Greater(t, len(keys), 800)
	for _, k := range keys {
		settings, ok := gitfile.DangerousSettings([]byte(k.config()))
		require.True(t, ok, k.config())
		require.Equal(t, k.runs, len(settings) > 0, "%s: %s", k.name, settings)
	}
}

func TestGitRunsByValue(t *testing.T) {
	setting := func(section, key, value string) []byte {
		return []byte("[" + section + "]\n" + key + " = \"" + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + "\"\n")
	}
	for _, c := range []struct {
		section, key string
		runs, plain  []string
	}{
		{"alias", "st",
			[]string{"-c core.fsmonitor=./x status", "--exec-path=. status", "grep -O./x y", "difftool -x ./x", "rebase -x ./x", "rebase --exec=./x", "bisect run ./x",
				"submodule foreach ./x", "diff --output=.git/hooks/x", `diff "--out"put=x`, "log --ou x", "fetch --upload-pack=./x", "config core.pager x", "other", "  !x", `sta\tus`, "log\n-1"},
			[]string{"", "status -sb", "log --oneline --graph --decorate", "commit --amend --no-edit", "checkout -b", "diff --cached --ours", "log -1 --format='%h %s'"}},
		{"alias", "mv", []string{"mv payload .git/hooks/pre-commit", "rm -r .", "clean -fdx"}, nil},
		{"mergetool \"vimdiff\"", "layout", []string{"LOCAL,BASE"}, nil},
		{"remotes", "default", []string{"--upload-pack=./x", "origin -u./x", "./x", "ext::x", "/tmp/x"}, []string{"", "origin", "origin up.stream o-2"}},
		{"branch \"main\"", "remote", []string{"-u", "ext::x", "foo::bar", "foo-bar::x", "foo://x"}, []string{"origin", ".", "https://h/p", "a-b"}},
		{"branch \"main\"", "pushRemote", []string{"--receive-pack=x"}, []string{"origin"}},
		{"remote", "pushDefault", []string{"--receive-pack=x"}, []string{"origin"}},
		{"branch \"main\"", "mergeOptions", []string{"-s ../x", "--strategy=../x", "-s index", "-F x", "--file=x"}, []string{"", "--no-ff", "--ff-only --no-edit", "-s ours", "-X theirs", "--no-ff -X patience"}},
		{"pull", "twohead", []string{"../x", "ort ../x", "index"}, []string{"", "ort", "recursive ours"}},
		{"pull", "octopus", []string{"../x"}, []string{"octopus"}},
		{"svn", "authorsProg", []string{"./x"}, nil},
		{`url "ext:"`, "insteadOf", []string{"x:", "https://"}, nil},
		{`url "e"`, "insteadOf", []string{"x"}, nil},
		{`url "/tmp/x"`, "pushInsteadOf", []string{"x"}, nil},
		{`url "git@example.com:"`, "insteadOf", nil, []string{"https://example.com/"}},
		{`url "https://example.com/"`, "pushInsteadOf", nil, []string{"gh:"}},
		{`remote "o"`, "url", []string{"ext::sh -c x", "fd::7", "hg::x", "-x", "EXT::x", "a-b::x", "1.2+3::x", "::x", "foo://x", "foo-bar://x", "HTTPS://h/x", "s3://b/x", "9://x"},
			[]string{"../a", "https://a/b", "http://a/b", "git@a:b::c", "ssh://a/b", "git://a/b", "git+ssh://a/b", "file:///a", "ftps://a/b", "C:/x", "[::1]:x", "host:x", "/a/b", "a_b://x", "a-b:x", ".", "~/x", "%20://x"}},
		{`remote "--upload-pack=x;git-upload-pack"`, "url", []string{"."}, nil},
		{`remote "--upload-pack=x;git-upload-pack"`, "fetch", []string{"+refs/heads/*:refs/remotes/o/*"}, nil},
		{`remote "a-b"`, "fetch", nil, []string{"+refs/heads/*:refs/remotes/a-b/*"}},
		{`submodule "-x"`, "active", []string{"true"}, nil},
		{`remote "o"`, "pushurl", []string{"ext::sh"}, []string{"git@a:b"}},
		{`submodule "o"`, "url", []string{"-oProxyCommand=x", "ext::x"}, []string{"../a"}},
		{`submodule "o"`, "update", []string{"!x", " !x"}, []string{"rebase", "none"}},
		{"rebase", "instructionFormat",
			[]string{"%s%nexec x", "%B", "%b", "%+s", "%x0aexec x", "%w(1)%s", "%(trailers)", "other", "oneline", "%s\nexec x", "%N", "%C(red)"},
			[]string{"%s", "(%an <%ae>) %s", "%s [%cd] %h"}},
		{"core", "protectHFS", []string{"false", "off", "0", "No", "", "00", "0x0", "0k", "-0", "+0"}, []string{"true", "1", "Yes", "on"}},
		{"core", "protectNTFS", []string{"", "00"}, []string{"true"}},
		{"pager", "log", []string{"less"}, []string{"true", "off"}},
		{`lfs "customtransfer.x"`, "path", []string{"x"}, nil},
		{`lfs`, "path", []string{"x"}, nil},
	} {
		for _, value := range c.runs {
			settings, ok := gitfile.DangerousSettings(setting(c.section, c.key, value))
			require.True(t, len(settings) > 0 || !ok, "%s.%s=%s", c.section, c.key, value)
		}
		for _, value := range c.plain {
			settings, ok := gitfile.DangerousSettings(setting(c.section, c.key, value))
			require.True(t, ok)
			require.Empty(t, settings, "%s.%s=%s", c.section, c.key, value)
		}
	}
}

func TestGitWithout(t *testing.T) {
	for _, c := range [][2]string{
		{"[core]\n\tbare = false\n\tpager = x\n\tautocrlf = true\n", "[core]\n\tbare = false\n\tautocrlf = true\n"},
		{"[core]\r\n\tpager = x\r\n\tbare = true\r\n", "[core]\r\n\tbare = true\r\n"},
		{"[core]pager = x # mine\n", "[core]# mine\n"},
		{"; a\n[core]\n# b\n\tpager = x ; c\n", "; a\n[core]\n# b\n\t; c\n"},
		{"[core]\n\tpager = x\\\n  y\n\tbare = true", "[core]\n\tbare = true"},
		{"[core]\n\tpager = x", "[core]\n"},
		{"[core]\n\tfsmonitor\n\tpager=\"a\\nb\"\n", "[core]\n\tfsmonitor\n"},
		{"\xef\xbb\xbf[core]pager=x\n[user]\nname=y\n", "\xef\xbb\xbf[core]\n[user]\nname=y\n"},
		{"[user]\nname=y\n", "[user]\nname=y\n"},
	} {
		settings, ok := gitfile.DangerousSettings([]byte(c[0]))
		require.True(t, ok)
		require.Equal(t, c[1], string(gitfile.WithoutSettings([]byte(c[0]), settings)))
	}
}

// The result has all settings except those that were removed.
func FuzzGitWithout(f *testing.F) {
	harmless, dangerous := configs(f)
	for _, config := range slices.Concat(harmless, dangerous) {
		f.Add([]byte(config))
	}
	f.Fuzz(func(t *testing.T, config []byte) {
		runs, ok := gitfile.DangerousSettings(config)
		if !ok {
			return
		}
		all, _ := gitfile.AllSettings(config)
		want := slices.DeleteFunc(all, func(s string) bool { return slices.Contains(runs, s) })
		without := gitfile.WithoutSettings(bytes.Clone(config), runs)
		left, ok := gitfile.AllSettings(without)
		require.True(t, ok, "%q", without)
		require.Equal(t, len(want), len(left), "%q", without)
		require.True(t, slices.Equal(want, left), "%q", without)
	})
}
