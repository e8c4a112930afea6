package secret_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// names returns the names in testdata/names.tsv: of secrets, and of other files.
func names(t testing.TB) (secrets, harmless []string) {
	raw, err := os.ReadFile(filepath.Join("testdata", "names.tsv"))
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

func TestSecretNames(t *testing.T) {
	secrets, harmless := names(t)
	at := func(name string) string { return filepath.FromSlash("/root/" + name) }
	settings := func(name string) bool { return secret.IsSettings(pathname.Base(at(name))) }
	for _, name := range secrets {
		for _, where := range []string{"", "a/b/c/"} {
			require.True(t, secret.IsPath(at(where+name)), name)
			require.True(t, secret.IsPath(at(where+strings.ToUpper(name))), name)
			require.True(t, secret.IsPath(at(where+strings.ReplaceAll(name, "s", "S"))), name)
		}
	}
	for _, name := range []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".\u00dfh", ".\u1e9eH/x", ".con\ufb01g/gh", ".co\u200dnf\ufe0fig/gh",
		"\ufb01sh_hi\ufb06ory", ".s\ufff0sh", ".k\u00adube", ".\u017f\u017fh", ".\u212aube/config", ".s\u200csh/x", "ID_R\u017fA"} {
		require.True(t, secret.IsPath(at(name)), name)
	}
	for _, name := range harmless {
		require.False(t, secret.IsPath(at(name)), name)
		require.False(t, settings(name), name)
	}
	for _, name := range []string{".env", ".ENV", ".env.local", ".env.production", "a/.npmrc", ".env.example.bak",
		".env~", ".env.bak", "env.bak", "env.copy", "ENV.OLD", "npmrc.backup", "Copy of .env", "copy of .env.local", ".env - Copy", ".env - Copy (2)", ".env (copy)", ".env copy 2", "Copy of .env.bak", ".env.1", ".env.swp", "#.env#", ".env.local.old", ".#.env", ".env.~1~", ".~.env", "#.env.local#", ".env-old", ".env_backup", ".env copy", ".env (1)",
		".env,v", ".npmrc~", ".npmrc.bak", "#.npmrc#", ".ENV.BAK", ".en\u200dv", ".env\ufe0f", ".np\u200cmrc~", ".env.un~", ".env.example~", "..env.un~", "..env.swp", "..env.kate-swp", "..npmrc.un~", ".env___jb_old___", "..env.local.un~"} {
		require.True(t, settings(name), name)
		require.False(t, secret.IsPath(at(name)), name)
	}
	for _, name := range []string{".env.example", ".env.local.sample", ".env.Template", ".env.dist", ".environment", "env", ".envrc", "x.env",
		".envs", ".env1", ".npmrcs", ".npmrc.example", "env.1", "npmrc.5", "env.go", "env.copy.go", "env copy", "copy of env", "env~", "#env#", "~", "#", "##", "~~", ".bak", ".#", ".env\u0301x"} {
		require.False(t, settings(name), name)
	}
}

// Settings of build tools are known by the directory that contains them.
func TestSettingsOfBuildTools(t *testing.T) {
	for path, build := range map[string]bool{".m2/settings.xml": true, ".M2/Settings.XML~": true, "a/.gradle/gradle.properties": true, ".gradle/gradle.properties.bak": true, ".npmrc": true, "a/.npmrc~": true,
		".env": false, "a/.env.local": false, ".m2/.env": false} {
		path = filepath.FromSlash("/root/" + path)
		require.True(t, secret.IsSettingsPath(path), path)
		require.Equal(t, build, secret.IsBuildSettings(path), path)
		require.False(t, secret.IsPath(path), path)
	}
	for _, path := range []string{"settings.xml", "m2/settings.xml", ".m2/repository/settings.xml", "gradle.properties", "gradle/gradle.properties", ".gradle/x", ".m2/wrapper.properties", "/", ""} {
		require.False(t, secret.IsSettingsPath(filepath.FromSlash(path)) || secret.IsBuildSettings(filepath.FromSlash("/root/"+path)), path)
	}
	require.Equal(t, "***\n\n***\r\n***\n", string(secret.Mask([]byte("<settings a='b'>\n\n  <password>\r\n# x=1\n"))))
}

// Names of keys and of their copies are looked into, ordinary names are not.
func TestNamesThatMayBeKeys(t *testing.T) {
	for _, name := range []string{"server.pem", "server.pem~", "server.key.bak", ".server.pem.swp", "#server.pem#", "Copy of server.PEM", "server copy.pem", "server.pem copy",
		"tls.key.2024", "ca.crt", "x.asc", "deploy_key", "my_id_rsa", "secrets", "k.p8-old", "k.ppk.orig"} {
		require.True(t, secret.MaybeKeyName(name), name)
	}
	for _, name := range []string{"main.go", "keys", "x.keys", "key.go", "pem", "monkey.txt", "x.keyboard", "id_rsa.pub", "README.md", "x.certs", "", "."} {
		require.False(t, secret.MaybeKeyName(name), name)
	}
}

// Every store of the table is a secret, by its path and as an entry of its
// directory, and MaybeIn and MaybeEntry do not exclude it.
func TestEveryListedStoreIsASecret(t *testing.T) {
	stores := secret.ListedStores()
	require.Contains(t, stores, ".huggingface/token")
	for _, store := range stores {
		path := filepath.FromSlash("/root/" + store)
		dir, name := filepath.Split(path)
		dir = filepath.Clean(dir)
		for _, path := range []string{path, strings.ToUpper(path), path + "/x"} {
			require.True(t, secret.IsPath(path), path)
		}
		require.True(t, secret.IsEntry(dir, name), store)
		require.True(t, secret.MaybeEntry(name) || secret.MaybeIn(dir), store)
	}
}
