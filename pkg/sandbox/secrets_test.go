package sandbox_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

var secretFiles = []string{
	".ssh/config", ".ssh/id_ed25519", ".ssh/keys/deep", ".gnupg/secring.gpg", ".aws/credentials", ".azure/token",
	".claude/.credentials.json", ".codex/auth.json", ".cargo/credentials.toml", ".config/git/credentials", ".Config/Git/Credentials", ".local/share/keyrings/login.keyring",
	".local/share/opencode/auth.json", ".cache/huggingface/token", ".password-store/x.gpg", ".my.cnf", ".config/rclone/rclone.conf", ".mozilla/firefox/p/logins.json", ".step/secrets/key",
	".kube/config", ".config/gcloud/credentials.db", ".config/gh/hosts.yml", ".docker/config.json", ".netrc", "_netrc",
	".pgpass", ".pypirc", ".git-credentials", ".vault-token", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519",
	"id_ed25519_sk", "deploy.p12", "deploy.pfx", "store.jks", "terraform.tfstate", "terraform.tfstate.backup",
	"prod.tfstate.1", ".bash_history", ".zsh_history", ".python_history", ".histfile", "fish_history",
	".ssh/id_rsa.pub", // in a store everything is
	".netrc~", "#.netrc#", ".netrc.bak", ".netrc.~2~", ".#.netrc.swp", ".pgpass.old", ".git-credentials.orig", "id_rsa~", "id_ed25519.bak",
	".id_rsa.swp", ".ssh.bak/x", ".aws~/credentials", "deploy.p12.old", "#.bash_history#", ".netrc.swp~",
}

var harmless = []string{
	"id_rsa.pub", "id_ed25519.pub", "ssh/config", "aws/credentials", ".docker/cli.json", ".config/other/gh", ".config/ghost",
	"git/credentials", ".claude/settings.json", ".codex/config.toml", "share/keyrings/x", ".cargo/config.toml", ".config/git/config", ".cache/token", "auth.json",
	"config.json", "docker/config.json", "netrc", ".sshrc", ".aws.md", "x.p12.txt", "p12", "tfstate.go", "history", "git_history",
	".github/workflows/ci.yml", ".gitignore", "id_rsa.go", "my_id_rsa", ".kubernetes/x", "jks",
}

func TestSecretNames(t *testing.T) {
	tr := newTree(t)
	fs := open(t, sandbox.New, tr.root)
	at := func(name string) string { return filepath.Join(tr.root, filepath.FromSlash(name)) }
	for _, name := range secretFiles {
		for _, where := range []string{"", "a/b/c/"} {
			require.True(t, fs.Denied(at(where+name)), name)
			require.True(t, fs.Denied(at(where+strings.ToUpper(name))), name)
			require.True(t, fs.Denied(at(where+strings.ReplaceAll(name, "s", "S"))), name)
		}
	}
	for _, name := range []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".\u00dfh", ".\u1e9eH/x", ".con\ufb01g/gh", ".co\u200dnf\ufe0fig/gh",
		"\ufb01sh_hi\ufb06ory", ".s\ufff0sh", ".k\u00adube", ".\u017f\u017fh", ".\u212aube/config", ".s\u200csh/x", "ID_R\u017fA"} {
		require.True(t, fs.Denied(at(name)), name)
	}
	for _, name := range harmless {
		require.False(t, fs.Denied(at(name)), name)
		require.False(t, fs.Masked(at(name)), name)
	}
	for _, name := range []string{".env", ".ENV", ".env.local", ".env.production", "a/.npmrc", ".env.example.bak",
		".env~", ".env.bak", ".env.swp", "#.env#", ".env.local.old", ".#.env", ".env.~1~", ".~.env", "#.env.local#", ".env-old", ".env_backup", ".env copy", ".env (1)",
		".env,v", ".npmrc~", ".npmrc.bak", "#.npmrc#", ".ENV.BAK", ".en\u200dv", ".env\ufe0f", ".np\u200cmrc~", ".env.un~", ".env.example~"} {
		require.True(t, fs.Masked(at(name)), name)
		require.False(t, fs.Denied(at(name)), name)
	}
	for _, name := range []string{".env.example", ".env.local.sample", ".env.Template", ".env.dist", ".environment", "env", ".envrc", "x.env",
		".envs", ".env1", ".npmrcs", ".npmrc.example", "env.bak", "#env#", "~", "#", "##", "~~", ".bak", ".#", ".env\u0301x"} {
		require.False(t, fs.Masked(at(name)), name)
	}
}
