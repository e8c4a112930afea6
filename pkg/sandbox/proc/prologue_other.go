//go:build !linux

package proc

import (
	"io"
	"os"
	"path/filepath"
)

// readReport reads the file that the prologue or the command wrote to temp, the
// private temporary directory. It returns nil unless that is a regular file of
// 1 to maxReport bytes that is not a link.
func readReport(temp string) []byte {
	name := filepath.Join(temp, reportName)
	before, err := os.Lstat(name)
	if err != nil || !before.Mode().IsRegular() || before.Size() <= 0 || before.Size() > maxReport {
		return nil
	}
	f, err := os.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
		return nil
	}
	report, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil || len(report) > maxReport {
		return nil
	}
	return report
}

// sealedFile returns an open file with text that has no name any more, so that no other
// process can open it.
func sealedFile(text string) (*os.File, error) {
	f, err := os.CreateTemp("", ".toolroom-prologue-*") // 0600
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		os.Remove(f.Name())
		return nil, err
	}
	read, err := os.Open(f.Name())
	os.Remove(f.Name())
	return read, err
}
