package sandbox_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A repository's settings can be edited, but not made to run anything.
func TestGitConfigIsWrittenWithCare(t *testing.T) {
	raw, err := os.ReadFile(filepath.FromSlash("../../internal/gitfile/testdata/configs.json"))
	require.NoError(t, err)
	var configs struct{ Dangerous []string }
	require.NoError(t, json.Unmarshal(raw, &configs))
	require.NotEmpty(t, configs.Dangerous)
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		old := "[core]\n\thooksPath = .husky\n"
		for _, dir := range []string{".git", ".git/modules/m", "bare.git"} {
			name := "root/" + dir + "/config"
			tr.write(t, name, old)
			fs := open(t, box, tr.root)
			_, err := put(fs, dir+"/config", old+"[user]\n\tname = A\n", sandbox.ReplaceOptions{})
			require.NoError(t, err)
			for _, config := range configs.Dangerous {
				_, err := put(fs, dir+"/config", old+config, sandbox.ReplaceOptions{})
				requireCode(t, toolerr.DeniedPath, err)
				_, err = put(fs, dir+"/config.worktree", config, sandbox.ReplaceOptions{})
				requireCode(t, toolerr.DeniedPath, err)
			}
			require.Equal(t, old+"[user]\n\tname = A\n", tr.onDisk(t, name))
		}
		_, err := put(open(t, box, tr.root), "config", "[core]\n\thooksPath = x\n", sandbox.ReplaceOptions{})
		require.NoError(t, err, "a file like any other")
	})
}

// Files of package managers are written, except for lines that run a program.
func TestSettingsJudgedByContent(t *testing.T) {
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/old/.npmrc", "git=mine\n")
		fs := open(t, box, tr.root)
		for name, c := range map[string]struct{ plain, runs string }{
			".npmrc":                {"registry=https://r\n", "init-module=./x.js\n"},
			"a/rust-toolchain.toml": {"[toolchain]\nchannel=\"1.80\"\n", "path=\"./t\"\n"},
			"a/.tool-versions":      {"nodejs 20\n", "ruby path:./t\n"},
			"old/.npmrc":            {"git=mine\nregistry=https://r\n", "git=other\n"},
		} {
			_, err := put(fs, name, c.plain, sandbox.ReplaceOptions{MakeParents: true})
			require.NoError(t, err, name)
			_, err = put(fs, name, c.plain+c.runs, sandbox.ReplaceOptions{})
			requireCode(t, toolerr.DeniedPath, err)
			require.Equal(t, c.plain, tr.onDisk(t, "root/"+name))
		}
	})
}

// TestProgramsOfGitAreProtected: file tools do not write a program that git's
// settings name.
func TestProgramsOfGitAreProtected(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/.git/HEAD", "ref: refs/heads/main\n")
		tr.write(t, "root/.git/config", "[filter \"x\"]\n\tclean = sh t/clean %f\n\tsmudge = ./new\n")
		fs := open(t, box, tr.root)
		for name, refused := range map[string]bool{"t/clean": true, "t/other": false, "clean": false, "new": true} {
			if name != "new" {
				tr.write(t, "root/"+name, "old")
			}
			_, err := put(fs, name, "new", sandbox.ReplaceOptions{})
			if refused {
				requireCode(t, toolerr.DeniedPath, err)
				require.ErrorContains(t, err, "is a program that git's settings run")
			} else {
				require.NoError(t, err)
			}
		}
	})
}

// TestSettingsBehindLinksAreProtected: file tools do not write the target of a
// link that is a project's settings.
func TestSettingsBehindLinksAreProtected(t *testing.T) {
	t.Parallel()
	eachWay(t, func(t *testing.T, box func(sandbox.Config) *sandbox.Sandbox) {
		tr := newTree(t)
		tr.write(t, "root/conf/mcp.json", "old")
		tr.write(t, "root/p/shared/claude/settings.json", "old")
		tr.link(t, "conf/mcp.json", "root/.mcp.json")
		tr.link(t, "shared/claude", "root/p/.claude")
		tr.link(t, "env/rc", "root/.envrc")
		fs := open(t, box, tr.root)
		for name, refused := range map[string]bool{
			"conf/mcp.json": true, "p/shared/claude/settings.json": true, "p/shared/claude/new": true, "env/rc": true,
			"conf/other.json": false, "p/shared/x": false, "mcp.json": false,
		} {
			_, err := put(fs, name, "new", sandbox.ReplaceOptions{MakeParents: true})
			if refused {
				requireCode(t, toolerr.DeniedPath, err)
				require.ErrorContains(t, err, "is reached through the link")
			} else {
				require.NoError(t, err, name)
			}
		}
	})
}
