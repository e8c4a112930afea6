package sandbox_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
)

var (
	gitHarmless = []string{
		"", "[core]\n\tbare = false\n", "[remote \"origin\"]\n\turl = git@example.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
		"[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n", "[alias]\n\tst = status -sb\n", "[core]\n\tfsmonitor = true\n",
		"# hooksPath = x\n; [include]\n[user]\n name = A # editor\n", "[pager]\n\tlog = false\n", "[core]\r\n\tautocrlf = true\r\n", "[user]\n\tname = \"a ; b\"\n", "[protocol]\n\tallow = never",
	}
	gitDangerous = []string{
		"[core]\n\thooksPath = x\n", "[CORE]HooksPath=x", "[x][core]hookspath=x\n", "[core] # c\n ; c\n\thooksPath\t=\tx", "[core]\n\thooks\\\nPath=x\n[core]\nhooksPath=y",
		"\xef\xbb\xbf[core]\nhookspath=x", "[core]\r\n\tsshCommand = \"evil\"\r\n", "[core]\n\tfsmonitor = ./run\n", "[core]\n\tpager = x", "[core]\neditor=x", "[alias]\n\tst = !evil\n",
		"[alias]\n\tst = \"!evil\"\n", "[alias]\n\tst = \\\n!evil\n", "[filter \"x\"]\n\tclean = evil\n", "[filter \"a]b\"]\n\tsmudge = evil\n", "[include]\n\tpath = ../x\n", "[includeIf \"gitdir:/\"]\npath=x",
		"[credential]\n\thelper = evil\n", "[credential \"https://x\"]\n\thelper = evil\n", "[remote \"o\"]\n\turl = ext::evil\n", "[url \"ext::evil\"]\n\tinsteadOf = x\n", "[diff \"x\"]\n\ttextconv = evil\n",
		"[diff]\nexternal=x", "[merge \"x\"]\n\tdriver = evil\n", "[gpg]\n\tprogram = evil\n", "[gpg \"ssh\"]\ndefaultKeyCommand=x", "[sequence]\n\teditor = evil\n", "[pager]\n\tlog = evil\n",
		"[protocol \"ext\"]\n\tallow = always\n", "[submodule \"x\"]\n\tupdate = !evil\n", "[core]\n\tworktree = /\n", "[hook \"x\"]\n\tcommand = y\n", "[remote \"o\"]\nuploadpack=x", "[filter.x]\nclean=y",
	}
)

func TestGitRuns(t *testing.T) {
	for _, config := range gitHarmless {
		settings, ok := sandbox.GitRuns([]byte(config))
		require.True(t, ok, config)
		require.Empty(t, settings, config)
	}
	for _, config := range gitDangerous {
		settings, ok := sandbox.GitRuns([]byte(config))
		require.True(t, len(settings) > 0 || !ok, config)
	}
	for _, config := range []string{"[core", "[core]\n\tx = \"y\n", "[core]\n\t= x", "[core]\nx = \\q\n", "[core]\n\x00", "[a \"b\n\"]\n", "[core]\nx y = z"} {
		_, ok := sandbox.GitRuns([]byte(config))
		require.False(t, ok, config)
	}
}
