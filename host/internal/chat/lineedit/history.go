package lineedit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// The limits of a history file. If one is exceeded, the older half of the entries is
// dropped when the file is next opened.
const (
	maxEntries      = 2000     // entries
	maxHistoryBytes = 1 << 20  // bytes
	maxEntryBytes   = 64 << 10 // bytes of one entry
)

// A History holds the typed texts, oldest first. Its file is readable only by the user
// (0600) and has a JSON string on each line; several programs may append to it.
type History struct {
	path    string // "": no file
	entries []string
}

// OpenHistory reads the history file, which need not exist; "" is a history without a
// file. With an error it also returns a history, which then may have no file.
func OpenHistory(path string) (*History, error) {
	h := &History{}
	if path == "" {
		return h, nil
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		h.path = path
		return h, nil
	case err != nil:
		return h, err
	case !info.Mode().IsRegular():
		return h, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return h, err
	}
	defer f.Close()
	if _, err := f.Seek(max(info.Size()-2*maxHistoryBytes, 0), io.SeekStart); err != nil {
		return h, err
	}
	text, err := io.ReadAll(io.LimitReader(f, 2*maxHistoryBytes))
	if err != nil {
		return h, err
	}
	ours := len(text) == 0
	for line := range bytes.Lines(text) {
		ours = ours || line[0] == '"'
		var entry string
		if json.Unmarshal(line, &entry) == nil && entry != "" { // incomplete lines and lines of other programs are ignored
			h.entries = append(h.entries, entry)
		}
	}
	if !ours { // rewriting it would lose its content
		return h, fmt.Errorf("%s is not a history file", path)
	}
	h.path = path
	if len(h.entries) <= maxEntries && info.Size() <= maxHistoryBytes {
		return h, nil
	}
	return h, h.shorten()
}

// shorten replaces the file by one with the newest entries: half of the permitted number
// and bytes. After an error the file is as before.
func (h *History) shorten() error {
	var lines [][]byte
	size := 0
	for i := len(h.entries) - 1; i >= 0 && len(lines) < maxEntries/2; i-- {
		line := encodeEntry(h.entries[i])
		if size += len(line); size > maxHistoryBytes/2 {
			break
		}
		lines = append(lines, line)
	}
	h.entries = h.entries[len(h.entries)-len(lines):]
	f, err := os.CreateTemp(filepath.Dir(h.path), ".history-*") // 0600
	if err != nil {
		return err
	}
	for i := len(lines) - 1; i >= 0 && err == nil; i-- {
		_, err = f.Write(lines[i])
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), h.path)
	}
	if err != nil {
		os.Remove(f.Name()) //nolint:errcheck // the error is that before
	}
	return err
}

// encodeEntry returns an entry as a line of the history file: a JSON string.
func encodeEntry(entry string) []byte {
	line, _ := json.Marshal(entry) //nolint:errcheck // a string always encodes
	return append(line, '\n')
}

// Add appends a typed text to the history and its file, unless it is blank, equals the last
// one, begins with a space or has more than maxEntryBytes bytes. An error means that the file
// could not be written; the entry is in the history nevertheless.
func (h *History) Add(entry string) error {
	if strings.TrimSpace(entry) == "" || entry[0] == ' ' || len(entry) > maxEntryBytes || len(h.entries) > 0 && h.entries[len(h.entries)-1] == entry {
		return nil
	}
	if h.entries = append(h.entries, entry); len(h.entries) > maxEntries {
		h.entries = h.entries[1:]
	}
	if h.path == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(h.path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	err = f.Chmod(0o600)
	_, failed := f.Write(encodeEntry(entry))
	return errors.Join(err, failed, f.Close())
}

// len returns the number of entries, 0 for nil.
func (h *History) len() int {
	if h == nil {
		return 0
	}
	return len(h.entries)
}

// at returns entry i, from 0, the oldest.
func (h *History) at(i int) string { return h.entries[i] }
