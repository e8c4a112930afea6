//go:build linux

package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// TestSettingsOfPackageManagers: lines that run a program are removed from
// settings that commands may write, the user's stay, and so do other lines.
func TestSettingsOfPackageManagers(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user(`mkdir d e; printf 'git=mine\na=1\n' > .npmrc; printf '[toolchain]\nchannel = "1.80"\n' > rust-toolchain.toml`)
		content := func(name string) string {
			text, err := os.ReadFile(filepath.Join(p.root, name))
			require.NoError(t, err, level)
			return string(text)
		}
		r := p.runner(level)
		result, out := run(t, r, p.command(`echo b=2 >> .npmrc; echo 'registry=https://r' > d/.npmrc; echo 'nodejs 20' > d/.tool-versions; sed -i s/80/81/ rust-toolchain.toml; ln .npmrc l; rm l
			mkdir -p node_modules/x new; echo git=x > node_modules/x/.npmrc; echo git=x > new/.npmrc`))
		require.Zero(t, result.ExitCode, out)
		require.Empty(t, result.Reverted, level)
		require.Equal(t, "git=mine\na=1\nb=2\n", content(".npmrc"))

		result, out = run(t, r, p.command(`printf 'init-module=./x\nc=3\n' >> .npmrc; echo git=./x > e/.npmrc; echo 'path = "./t"' >> rust-toolchain.toml; echo 'ruby path:./t' >> d/.tool-versions; mv d/.npmrc n; ln -s n d/.npmrc; ln .npmrc l; sleep 0.2`))
		require.Zero(t, result.ExitCode, out)
		require.Len(t, result.Reverted, 5, level)
		require.Equal(t, "git=mine\na=1\nb=2\nc=3\n", content(".npmrc"), level)
		require.Equal(t, "[toolchain]\nchannel = \"1.81\"\n", content("rust-toolchain.toml"), level)
		require.Equal(t, "nodejs 20\n", content("d/.tool-versions"), level)
		require.NoFileExists(t, filepath.Join(p.root, "e/.npmrc"), level)
		require.NoFileExists(t, filepath.Join(p.root, "d/.npmrc"), level)
	}
}

// TestNpmrcIsReadAsNpmReadsIt: a line by which npm runs a program is removed in
// each form that npm understands.
func TestNpmrcIsReadAsNpmReadsIt(t *testing.T) {
	t.Parallel()
	for _, level := range levels(t) {
		if level == proc.Off {
			continue
		}
		p := newProject(t)
		p.user(`echo '{"scripts":{"t":"echo x"}}' > package.json`)
		r := p.runner(level)
		run(t, r, p.command(`printf 'EVIL' > x.sh; chmod +x x.sh`))
		_, err := exec.LookPath("npm")
		for _, line := range []string{`script-shell;x=./x.sh`, `script-shell#x=./x.sh`, `\357\273\277script-shell=./x.sh`, `a=1\n\357\273\277script-shell=./x.sh`, `script-shell\357\273\277=./x.sh`,
			`'["script-shell"]'=./x.sh`, `'  "script-shell" '=./x.sh`, `node-options=--require=./x.cjs`} {
			result, out := run(t, r, p.command("echo 'require(\"fs\").writeFileSync(\""+p.mark+"\", \"\")' > x.cjs; cat > .npmrc <<'END'\n"+decode(line)+"\nEND\n"))
			require.Equal(t, []string{filepath.Join(p.root, ".npmrc")}, result.Reverted, "%s %s: %s", level, line, out)
			if err == nil {
				require.False(t, p.ran("npm run -s t; :"), "%s %s", level, line)
			}
			p.user("rm -f .npmrc")
		}
	}
}

// decode replaces the escapes of a line of .npmrc.
func decode(line string) string {
	return strings.NewReplacer(`\n`, "\n", `\357\273\277`, "\ufeff").Replace(line)
}
