package pathname_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
)

func TestFold(t *testing.T) {
	for in, want := range map[string]string{
		"": "", ".Git": ".Git", "日本語": "日本語", "\xff": "\xff", ".g\u200cit": ".git", ".\u017f\u017fh": ".ssh", ".\u212aube": ".kube",
		".\u00dfh": ".ssh", "con\ufb01g": "config", "o\ufb03ce": "office", "\ufb06ory\xff": "story\xff", "\u200d": "", ".env\ufe0f": ".env",
	} {
		require.Equal(t, want, pathname.Fold(in), "%q", in)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { pathname.Fold("docs/日本語.txt") }))
}

func TestEqualFold(t *testing.T) {
	require.True(t, pathname.EqualFold(".GIT", ".git"))
	require.False(t, pathname.EqualFold(".git", ".gi"))
	require.False(t, pathname.EqualFold("\u212a", "k"), "ASCII only: Fold comes before")
	require.True(t, pathname.HasSuffixFold("x.GIT", ".git"))
	require.False(t, pathname.HasSuffixFold("git", ".git"))
}

func TestBase(t *testing.T) {
	for in, want := range map[string]string{"": "", "a": "a", "/a/b": "b", "/a/": "", "/": ""} {
		require.Equal(t, want, pathname.Base(in), in)
	}
}
