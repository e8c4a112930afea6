package sandbox

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/gitfile"
	"github.com/toolroom-mcp/toolroom/internal/projectfile"
	"github.com/toolroom-mcp/toolroom/pkg/sandbox/pathname"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// maxGitConfig bounds the bytes that are read of a repository's settings.
const maxGitConfig = 1 << 20

// isGitConfig reports whether a path is, by its name, the settings file of a
// repository, of a repository in another one, or .gitmodules.
func isGitConfig(abs string) bool {
	parts := splitPath(abs)
	last := pathname.Fold(parts[len(parts)-1])
	if pathname.EqualFold(last, ".gitmodules") {
		return true
	}
	if !pathname.EqualFold(last, "config") && !pathname.EqualFold(last, "config.worktree") {
		return false
	}
	for i, part := range parts[:len(parts)-1] {
		part = pathname.Fold(part)
		if pathname.EqualFold(part, ".git") || pathname.HasSuffixFold(part, ".git") && (i == len(parts)-2 || pathname.EqualFold(pathname.Fold(parts[i+1]), "modules")) {
			return true
		}
	}
	return false
}

// dangerousSettings returns the settings in the target, with the given content, that
// make git or, for a file that is judged by its content, another program run a program.
// ok is false if git would reject the content.
func (t *Target) dangerousSettings(config []byte) (settings []string, ok bool) {
	if projectfile.IsJudgedByContent(pathname.Fold(t.base)) {
		return projectfile.LinesThatRun(pathname.Fold(t.base), config), true
	}
	if pathname.EqualFold(pathname.Fold(t.base), ".gitmodules") {
		return gitfile.DangerousModulesSettings(config)
	}
	return gitfile.DangerousSettings(config)
}

// describeConfigReaders returns which programs read the target as settings, for
// an error: "git" or "programs of its directory".
func (t *Target) describeConfigReaders() string {
	if projectfile.IsJudgedByContent(pathname.Fold(t.base)) {
		return "programs of its directory"
	}
	return "git"
}

// checkConfigWrite calls write to get the new content, if the target holds settings that
// can run programs, and returns a function that writes the same content. It returns
// DENIED_PATH if the content has a setting that runs a program and that the current file
// does not have, or if git could not parse it; TOO_LARGE above maxGitConfig. For other
// targets it returns write itself, uncalled, and sets gitUnchecked.
func (t *Target) checkConfigWrite(ctx context.Context, write func(io.Writer) error) (func(io.Writer) error, error) {
	if t.fs.matchesAny(t.fs.writes().allow, t.Path) || !isGitConfig(t.Path) && !isGitConfig(t.asked) && !t.isGitConfig() && !t.isIncludedConfig() && !projectfile.IsJudgedByContent(pathname.Fold(t.base)) {
		t.gitUnchecked = true
		return write, nil
	}
	var content bytes.Buffer
	if err := writeTo(ctx, &content, write); err != nil {
		return nil, err
	}
	if content.Len() > maxGitConfig {
		return nil, toolerr.New(toolerr.TooLarge, "%s would be larger than %d bytes, too large for git settings", pathname.Escape(t.name), maxGitConfig)
	}
	var before []string
	if file, err := t.open(); err == nil {
		defer file.Close()
		old, err := io.ReadAll(io.LimitReader(file, maxGitConfig))
		if err != nil {
			return nil, err
		}
		before, _ = t.dangerousSettings(old)
	} else if _, err2 := t.currentStat(); err2 == nil {
		return nil, err
	}
	after, ok := t.dangerousSettings(content.Bytes())
	if !ok {
		return nil, toolerr.New(toolerr.DeniedPath, "%s is not written: git could no longer parse it, so its effect cannot be checked; correct its syntax", pathname.Escape(t.name))
	}
	for _, setting := range after {
		if !slices.Contains(before, setting) {
			return nil, toolerr.New(toolerr.DeniedPath, "%s is not written: %s makes %s run a program or follow other settings; ask the user, who can allow it with --allow-write",
				pathname.Escape(t.name), pathname.Escape(setting), t.describeConfigReaders())
		}
	}
	return Bytes(content.Bytes()), nil
}
