package audit

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Files is a sink that appends to files of a directory, audit-DATE.jsonl and,
// where that is full, audit-DATE.001.jsonl and so on, each 0600. Several hosts
// may write to the same directory: every batch is one append. It is used by
// one goroutine.
type Files struct {
	cfg  Config
	file *os.File
	date string
	part int
	size int64
	torn bool // the last line may not have its end
	buf  []byte
}

// NewFiles returns the sink of a directory, which is made with the first
// record.
func NewFiles(c Config) *Files { return &Files{cfg: c.withDefaults()} }

// Append writes records as lines.
func (f *Files) Append(_ context.Context, records ...[]byte) error {
	if err := f.open(time.Now().UTC().Format(time.DateOnly)); err != nil {
		return err
	}
	f.buf = f.buf[:0]
	if f.torn {
		f.buf = append(f.buf, '\n')
	}
	for _, r := range records {
		f.buf = append(append(f.buf, r...), '\n')
	}
	n, err := f.file.Write(f.buf)
	f.size += int64(n)
	if n > 0 {
		f.torn = f.buf[n-1] != '\n'
	}
	return err
}

// open sees to it that the file of a day is open and has room.
func (f *Files) open(date string) error {
	if f.file != nil && f.date == date && f.size < f.cfg.FileSize {
		return nil
	}
	if err := os.MkdirAll(f.cfg.Dir, 0o700); err != nil {
		return err
	}
	part := 0
	if f.date == date && f.file != nil {
		part = f.part + 1
	}
	for ; ; part++ {
		name := filepath.Join(f.cfg.Dir, fileName(date, part))
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		info, err := file.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", name)
		}
		if err != nil {
			return errors.Join(err, file.Close())
		}
		if info.Size() >= f.cfg.FileSize {
			if err := file.Close(); err != nil {
				return err
			}
			continue
		}
		last := []byte{'\n'}
		if info.Size() > 0 {
			if _, err := file.ReadAt(last, info.Size()-1); err != nil {
				return errors.Join(err, file.Close())
			}
		}
		old := f.file
		f.file, f.date, f.part, f.size, f.torn = file, date, part, info.Size(), last[0] != '\n'
		f.prune()
		if old != nil {
			return errors.Join(old.Sync(), old.Close())
		}
		return nil
	}
}

func fileName(date string, part int) string {
	if part == 0 {
		return "audit-" + date + ".jsonl"
	}
	return fmt.Sprintf("audit-%s.%03d.jsonl", date, part)
}

// prune removes what is too old or too much. Files that cannot be removed
// stay: the next one tries again.
func (f *Files) prune() {
	names, err := fileNames(f.cfg.Dir)
	if err != nil {
		return
	}
	oldest := time.Now().UTC().Add(-f.cfg.Age).Format(time.DateOnly)
	total := f.cfg.FileSize // of the one that is being written
	for _, name := range slices.Backward(names) {
		if name == filepath.Base(f.file.Name()) {
			continue
		}
		path := filepath.Join(f.cfg.Dir, name)
		info, err := os.Lstat(path)
		if err != nil {
			continue
		}
		total += info.Size()
		if total > f.cfg.Keep || strings.TrimPrefix(name, "audit-") < oldest {
			os.Remove(path) //nolint:errcheck // see above
		}
	}
}

// fileNames returns the log's files, oldest first.
func fileNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "audit-") && strings.HasSuffix(e.Name(), ".jsonl") {
			names = append(names, e.Name())
		}
	}
	// Without the ending a day's first file comes before its others.
	slices.SortFunc(names, func(a, b string) int {
		return strings.Compare(strings.TrimSuffix(a, ".jsonl"), strings.TrimSuffix(b, ".jsonl"))
	})
	return names, err
}

// Sync brings what was written to the disk.
func (f *Files) Sync() error {
	if f.file == nil {
		return nil
	}
	return f.file.Sync()
}

// Close closes the file.
func (f *Files) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// An Event is one line of the log.
type Event struct {
	Time    time.Time       `json:"time"`
	Event   string          `json:"event"`
	ID      string          `json:"id"`
	Tool    string          `json:"tool"`
	Server  string          `json:"server"`
	Caller  string          `json:"caller"`
	Depth   int             `json:"depth"`
	Args    json.RawMessage `json:"args"`
	Millis  float64         `json:"ms"`
	Bytes   int64           `json:"bytes"`
	IsError bool            `json:"isError"`
	Code    string          `json:"code"`
	Error   string          `json:"error"`
	Records int             `json:"records"` // lost
}

// Read calls visit with the events of a directory's files since a time, in
// the order they were written, and says how many lines were none.
func Read(dir string, since time.Time, visit func(Event)) (skipped int, err error) {
	names, err := fileNames(dir)
	if err != nil {
		return 0, err
	}
	first := since.UTC().Format(time.DateOnly)
	for _, name := range names {
		if strings.TrimPrefix(name, "audit-") < first {
			continue
		}
		n, err := readFile(filepath.Join(dir, name), since, visit)
		skipped += n
		if err != nil {
			return skipped, err
		}
	}
	return skipped, nil
}

func readFile(path string, since time.Time, visit func(Event)) (skipped int, err error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // only read
	in := bufio.NewReaderSize(file, 64<<10)
	for {
		line, err := readLine(in)
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var e Event
			if json.Unmarshal(line, &e) != nil || e.Event == "" {
				skipped++
			} else if !e.Time.Before(since) {
				visit(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return skipped, nil
		}
		if err != nil {
			return skipped, err
		}
	}
}

// maxLine bounds what is taken for an event.
const maxLine = 1 << 20

// readLine returns a line, of one that is too long the beginning.
func readLine(in *bufio.Reader) (line []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
