package writeguard

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolroom-mcp/toolroom/internal/projectfile"
)

// checkJudgedSettings removes the lines that run a program, except for those of
// the baseline, from a file such as .npmrc, and removes a link in its place.
// Like project settings, the file is not checked in a new directory. Its content
// is not in the baseline, because it may hold secrets.
func (rc *rootCheck) checkJudgedSettings(name, path, repo string, inBaseline bool, was, now *fileState) {
	if !inBaseline && !rc.baseline.Tops[repo] && !rc.baseline.Seen.has(dirKey(repo)) {
		return
	}
	if !now.Mode.IsRegular() || now.Size > maxStoredBytes {
		rc.recordRevert(path, rc.withAccess(name, func() error { return rc.removeItem(name) }))
		return
	}
	unwanted := slices.DeleteFunc(slices.Clone(now.Runs), func(line string) bool { return slices.Contains(was.Runs, line) })
	if len(unwanted) == 0 {
		return
	}
	content, err := readRegularFile(path, maxStoredBytes)
	if os.IsNotExist(err) {
		return
	}
	rc.copies.store(path, content)
	rest := projectfile.WithoutLines(content, unwanted)
	again := projectfile.LinesThatRun(filepath.Base(name), rest) // the file may have changed since it was read
	if err != nil || !inBaseline && len(bytes.TrimSpace(rest)) == 0 || slices.ContainsFunc(again, func(line string) bool { return !slices.Contains(was.Runs, line) }) {
		rc.recordRevert(path, rc.withAccess(name, func() error { return rc.removeItem(name) }))
		return
	}
	rc.recordRevert(path, rc.withAccess(name, func() error { return rc.replaceFile(name, rest, now.Mode.Perm()|0o400) }))
}
