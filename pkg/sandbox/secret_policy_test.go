package sandbox_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// TestDeniedIn goes down random paths: at each step the entry of a directory
// that is not denied is judged as the whole path is.
func TestDeniedIn(t *testing.T) {
	tr := newTree(t)
	parts := []string{
		"a", "config.json", "gh", "gcloud", ".ssh", ".docker", ".config", ".DOCKER", ".Con\u200cfig", "Gcloud", "_netrc", ".kube",
		"id_rsa", "x.p12", "terraform.tfstate.1", ".histfile", "\u200c", "\xff", ".env", "_history", ".zsh_history", ".docker\u200c", "#.docker#", ".docker.bak", "#.con\ufb01g#", ".env~", "#.env#", ".\u00dfh",
	}
	allowing := func(c sandbox.Config) *sandbox.Sandbox {
		c.AllowPaths = []string{".ssh", "gh", "a/*.p12", "**/.config/gcloud/*"}
		return sandbox.New(c)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, fs := range []*sandbox.FS{open(t, sandbox.New, tr.root), open(t, allowing, tr.root)} {
		denied, ordinary := 0, 0
		for range 20_000 {
			dir := tr.root
			for range 5 {
				name := parts[r.IntN(len(parts))]
				want := fs.Denied(filepath.Join(dir, name))
				require.Equal(t, want, fs.DeniedIn(dir, name), "%q in %q", name, dir)
				noted := secret.MaybeEntry(name) || secret.MaybeIn(dir)
				require.True(t, noted || !want && !fs.Masked(name), "%q in %q", name, dir)
				if !noted {
					ordinary++
				}
				if want {
					denied++
					break
				}
				dir = filepath.Join(dir, name)
			}
		}
		require.NotZero(t, denied)
		require.NotZero(t, ordinary)
	}
}

func TestDeniedAllocatesNothing(t *testing.T) {
	tr := newTree(t)
	fs := open(t, sandbox.New, tr.root)
	for _, name := range []string{"a/b/c/main.go", ".github/workflows/build.yml", "docs/\u65e5\u672c\u8a9e.txt", ".config/x", "x.tfvars"} {
		path := filepath.Join(tr.root, name)
		require.Zero(t, testing.AllocsPerRun(100, func() { fs.Denied(path); fs.Masked(path) }), name)
	}
}

// secretNames returns the names that package secret tests: of secrets, and of
// other files.
func secretNames(t testing.TB) (secrets, harmless []string) {
	raw, err := os.ReadFile(filepath.FromSlash("secret/testdata/names.tsv"))
	require.NoError(t, err)
	for line := range strings.Lines(string(raw)) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch kind {
		case "secret":
			secrets = append(secrets, name)
		case "-":
			harmless = append(harmless, name)
		}
	}
	require.NotEmpty(t, secrets)
	require.NotEmpty(t, harmless)
	return secrets, harmless
}

// A secret is refused by the name asked for, and by the name that a link leads to.
func TestSecretsAreNotRead(t *testing.T) {
	secrets, harmless := secretNames(t)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		for _, name := range slices.Concat(secrets, harmless) {
			tr.write(t, "root/h/"+name, "content of "+name)
		}
		tr.link(t, ".ssh", "root/h/keys")
		tr.link(t, ".ssh/id_ed25519", "root/h/readme")
		tr.write(t, "root/h/behind", "content of id_ecdsa_sk")
		tr.link(t, "behind", "root/h/id_ecdsa_sk")
		tr.link(t, "../a.txt", "root/h/.ssh/harmless-target")
		tr.link(t, filepath.Join(tr.root, "h", ".aws"), "root/h/abs")
		fs := open(t, box, tr.root)
		for _, name := range secrets {
			_, err := read(t, fs, "h/"+name)
			requireCode(t, toolerr.DeniedPath, err)
			require.NotContains(t, err.Error(), "content of")
		}
		for _, name := range harmless {
			content, err := read(t, fs, "h/"+name)
			require.NoError(t, err, name)
			require.Equal(t, "content of "+name, content)
		}
		for _, name := range []string{"h/keys/config", "h/readme", "h/id_ecdsa_sk", "h/behind", "h/abs/credentials", "h/.ssh/nothing", "h/keys/nothing",
			"h/.ssh/harmless-target", "h/dir/../.ssh/config", "h/./.ssh//config", filepath.Join(tr.root, "h/.ssh/config"), "h/.ssh/nothing/x", "h/.SSH/config"} {
			_, err := fs.Open(name)
			requireCode(t, toolerr.DeniedPath, err)
		}
		for _, name := range []string{"h/.ssh", "h/keys", "h/.ssh/keys", "h/.config/gh", "h/abs/"} {
			_, err := fs.OpenDir(name)
			requireCode(t, toolerr.DeniedPath, err)
		}
		// What a listing shows may be looked at, what is deeper may not.
		for _, name := range []string{"h/.ssh", "h/id_rsa", "h/keys"} {
			_, err := fs.Stat(name)
			require.NoError(t, err, name)
		}
		for _, name := range []string{"h/.ssh/config", "h/.ssh/nothing", "h/keys/config", "h/keys/nothing"} {
			_, err := fs.Stat(name)
			requireCode(t, toolerr.DeniedPath, err)
		}
	})
}

func TestAllowPath(t *testing.T) {
	tr := newTree(t)
	for _, name := range []string{"root/.ssh/config", "root/x/deploy.p12", "root/id_rsa", "second/.env", "root/.env"} {
		tr.write(t, name, "content")
	}
	tr.write(t, "root/key.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\nx\n")
	cases := []struct {
		glob            string
		readable, still string
	}{
		{"*.p12", "x/deploy.p12", "id_rsa"},
		{"x/*.p12", "x/deploy.p12", "id_rsa"},
		{".ssh", ".ssh/config", "id_rsa"},
		{".ssh/", ".ssh/config", "id_rsa"},
		{".ssh/**", ".ssh/config", "id_rsa"},
		{".ssh/con*", ".ssh/config", "id_rsa"},
		{filepath.Join(tr.root, "id_rsa"), "id_rsa", ".ssh/config"},
		{"~/root/id_rsa", "id_rsa", ".ssh/config"},
		{"key.txt", "key.txt", "id_rsa"},
	}
	for _, tc := range cases {
		config := sandbox.Config{Roots: []string{tr.root}, AllowPaths: []string{tc.glob}, Getenv: env("HOME", tr.base, "USERPROFILE", tr.base)}
		require.NoError(t, config.Validate())
		fs, err := sandbox.New(config).FS(context.Background())
		require.NoError(t, err)
		_, err = read(t, fs, tc.readable)
		require.NoError(t, err, tc.glob)
		_, err = read(t, fs, tc.still)
		requireCode(t, toolerr.DeniedPath, err)
	}
	fs, err := sandbox.New(sandbox.Config{Roots: []string{tr.root, tr.second}, AllowPaths: []string{".env"}, Getenv: noEnv}).FS(context.Background())
	require.NoError(t, err)
	require.False(t, fs.Masked(filepath.Join(tr.root, ".env")))
	require.False(t, fs.Masked(filepath.Join(tr.second, ".env")))
}

func TestPrivateKeysByContent(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		keys := map[string]string{
			"pkcs8": "-----BEGIN PRIVATE KEY-----\nMIIE\n", "id_x.pub": "-----BEGIN EC PRIVATE KEY-----\n",
			"ecparam": "-----BEGIN EC PARAMETERS-----\nBggq\n-----END EC PARAMETERS-----\n-----BEGIN EC PRIVATE KEY-----\n",
			"utf16le": "\xff\xfe" + strings.ReplaceAll("-----BEGIN RSA PRIVATE KEY-----\r\nMIIE\r\n", "", "\x00")[1:],
		}
		shown := map[string]string{
			"cert": "-----BEGIN CERTIFICATE-----\nMIIE\n", "empty": "", "about": "A key begins with\n-----BEGIN PRIVATE KEY-----\n",
		}
		for name, content := range keys {
			tr.write(t, "root/"+name, content)
		}
		for name, content := range shown {
			tr.write(t, "root/"+name, content)
		}
		tr.link(t, "pkcs8", "root/link")
		fs := open(t, box, tr.root)
		for name := range keys {
			_, err := fs.Open(name)
			requireCode(t, toolerr.DeniedPath, err)
		}
		_, err := fs.Open("link")
		requireCode(t, toolerr.DeniedPath, err)
		for name, content := range shown {
			got, err := read(t, fs, name)
			require.NoError(t, err)
			require.Equal(t, content, got)
		}
	})
}

func TestMaskedFile(t *testing.T) {
	tr := newTree(t)
	tr.write(t, "root/.env", "A=b\n")
	tr.link(t, ".env", "root/settings")
	tr.link(t, "a.txt", "root/.npmrc")
	fs := open(t, sandbox.New, tr.root)
	for name, masked := range map[string]bool{".env": true, "settings": true, ".npmrc": true, "a.txt": true, "dir/b.txt": false} {
		f, err := fs.Open(name)
		require.NoError(t, err)
		require.Equal(t, masked, f.Masked, name)
		require.NoError(t, f.Close())
	}
}

func BenchmarkDenied(b *testing.B) {
	dir := b.TempDir()
	fs, err := sandbox.New(sandbox.Config{Roots: []string{dir}, Getenv: noEnv}).FS(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(dir, "pkg/mcpkit/internal/transport/handler_test.go")
	b.ReportAllocs()
	for b.Loop() {
		fs.Denied(path)
	}
}
