package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Files is a sink that appends to files of a directory: audit-DATE.jsonl and, when that is
// full, audit-DATE.001.jsonl and so on, each with mode 0600. Several hosts may write to
// the same directory and remove old files there; a batch is one append to a file that
// still exists afterwards. It is used by one goroutine.
type Files struct {
	cfg  Config
	file *os.File
	date string
	end  int64 // where the last append ended
	buf  []byte
}

// NewFiles returns the sink for a directory, which is created for the first record.
func NewFiles(c Config) *Files { return &Files{cfg: c.withDefaults()} }

// maxMoves bounds the attempts to write a batch whose file other processes keep
// removing.
const maxMoves = 8

// Append writes records as lines to the file of this day, which it creates if necessary. It
// returns an error if the records could not be written.
func (f *Files) Append(_ context.Context, records ...[]byte) error {
	for range maxMoves {
		whole, err := f.open(time.Now().UTC().Format(time.DateOnly))
		if err != nil {
			return err
		}
		f.buf = f.buf[:0]
		if !whole {
			f.buf = append(f.buf, '\n')
		}
		for _, r := range records {
			f.buf = append(append(f.buf, r...), '\n')
		}
		if _, err := f.file.Write(f.buf); err != nil {
			return err
		}
		size, err := f.currentSize()
		if f.end = size; err == nil {
			return nil
		}
	}
	return fmt.Errorf("other hosts remove the files in %s as soon as they are written; raise the size limit of the audit log (keep)", f.cfg.Dir)
}

// errFileGone is returned by currentSize.
var errFileGone = errors.New("it no longer exists")

// currentSize returns the current size of the file, to which other processes can
// append, or errFileGone if it was removed or replaced.
func (f *Files) currentSize() (int64, error) {
	mine, err := f.file.Stat()
	if err != nil {
		return 0, err
	}
	there, err := os.Lstat(f.file.Name())
	if err != nil || !os.SameFile(mine, there) {
		return 0, errFileGone
	}
	return mine.Size(), nil
}

// open opens the last file of a day, or the next one if that is full, and creates it if
// necessary. complete reports whether its last line ends in a newline.
func (f *Files) open(date string) (complete bool, err error) {
	if f.file != nil && f.date == date {
		if size, err := f.currentSize(); err == nil && size < f.cfg.FileSize {
			return f.lastLineComplete(size)
		}
	}
	if err := os.MkdirAll(f.cfg.Dir, 0o700); err != nil {
		return false, err
	}
	names, err := fileNames(f.cfg.Dir)
	if err != nil {
		return false, err
	}
	part := 0 // number of the last file; earlier ones can have been removed
	for _, name := range names {
		if day, n := parseFileName(name); day == date {
			part = max(part, n)
		}
	}
	for ; ; part++ {
		name := filepath.Join(f.cfg.Dir, fileName(date, part))
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return false, err
		}
		info, err := file.Stat()
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is not a regular file", name)
		}
		if err != nil {
			return false, errors.Join(err, file.Close())
		}
		if info.Size() >= f.cfg.FileSize {
			if err := file.Close(); err != nil {
				return false, err
			}
			continue
		}
		old := f.file
		f.file, f.date, f.end = file, date, 0
		f.prune()
		if old != nil {
			if err := errors.Join(old.Sync(), old.Close()); err != nil {
				return false, err
			}
		}
		return f.lastLineComplete(info.Size())
	}
}

// lastLineComplete reports whether a file of this size ends in a newline. After a full disk
// it may not, whichever process wrote it. It returns the error of reading the file.
func (f *Files) lastLineComplete(size int64) (bool, error) {
	if size == 0 || size == f.end {
		return true, nil
	}
	var last [1]byte
	if _, err := f.file.ReadAt(last[:], size-1); err != nil {
		return false, err
	}
	return last[0] == '\n', nil
}

// fileName returns the name of a day's file; part 0 is the first of the day.
func fileName(date string, part int) string {
	if part == 0 {
		return "audit-" + date + ".jsonl"
	}
	return fmt.Sprintf("audit-%s.%03d.jsonl", date, part)
}

// prune removes files that are too old or too large together. Files that cannot be
// removed are kept until the next attempt.
func (f *Files) prune() {
	names, err := fileNames(f.cfg.Dir)
	if err != nil {
		return
	}
	oldest := time.Now().UTC().Add(-f.cfg.Age).Format(time.DateOnly)
	total := f.cfg.FileSize // for the file that is being written
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

// fileNames returns the log's files, oldest first; none if the directory does not exist.
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
	slices.SortFunc(names, func(a, b string) int {
		dayA, partA := parseFileName(a)
		dayB, partB := parseFileName(b)
		return cmp.Or(strings.Compare(dayA, dayB), partA-partB)
	})
	return names, err
}

// parseFileName returns the day and the part in the name of a log file, which must be one of
// fileNames. The first file of a day is part 0.
func parseFileName(name string) (date string, part int) {
	date, number, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, "audit-"), ".jsonl"), ".")
	part, _ = strconv.Atoi(number) //nolint:errcheck // the first file of a day has no number
	return date, part
}

// Sync writes the file to the disk; it does nothing before the first record.
func (f *Files) Sync() error {
	if f.file == nil {
		return nil
	}
	return f.file.Sync()
}

// Close closes the file; it does nothing before the first record.
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
	Refused string          `json:"refused"` // by the sandbox of the server
	Records int             `json:"records"` // number of lost records
}

// Read calls visit with the events of a directory's files since a time, in the order of
// writing. skipped is the number of lines that are not events. It stops at a file that
// cannot be read, and returns the error.
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

// readFile passes the events of a file since a time to visit. skipped is the number of
// malformed lines.
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

// maxLine is the length at which a line is truncated, in bytes.
const maxLine = 1 << 20

// readLine returns a line with its end, or io.EOF with the rest of the file. It truncates
// long lines to about maxLine bytes.
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
