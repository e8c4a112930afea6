package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// A PDF is read in a separate process: this binary, with the open file as its
// standard input and no other resources. The format is old and loosely
// specified, and a hostile file can make any parser loop, recurse or allocate
// without end. A process can be killed, a goroutine cannot.
const (
	pdfWorkerEnv = "TOOLROOM_VIEW_PDF"
	// maxPDFText bounds the text returned by a worker, in bytes.
	maxPDFText = 1 << 20
	// maxPDFMemory is the memory at which a worker exits, in bytes.
	maxPDFMemory = 256 << 20
)

// pdfSlots holds an item for each PDF that is being read, at most two.
var pdfSlots = make(chan struct{}, 2)

// pdfPage is the text of one page.
type pdfPage struct {
	Number int    `json:"number"` // from 1
	Text   string `json:"text"`   // lines end in \n; empty for a scanned page
	Fault  string `json:"fault,omitempty"`
}

// pdfDocument is the answer of a worker.
type pdfDocument struct {
	Total int       `json:"total"` // number of pages in the document
	Pages []pdfPage `json:"pages"`
	// Cut means that the text reached maxPDFText; the next call should
	// start after the last page.
	Cut   bool         `json:"cut,omitempty"`
	Code  toolerr.Code `json:"code,omitempty"`
	Error string       `json:"error,omitempty"`
}

// isPDF reports whether head, the first bytes of a file, has a PDF header. Like
// other readers, it searches the first 1 KiB.
func isPDF(head []byte) bool {
	at := bytes.Index(head[:min(len(head), 1024)], []byte("%PDF-"))
	if at < 0 {
		return false
	}
	// Only white space or a byte order mark may precede the header: a text
	// that mentions "%PDF-" is not a PDF.
	return len(bytes.Trim(head[:at], "\xef\xbb\xbf \t\r\n\x00")) == 0
}

// pdfText extracts the text of count pages starting with page first. f must be
// a regular file, because the worker inherits it as its standard input. It
// returns BINARY_FILE for a damaged file, PERMISSION_DENIED for an encrypted
// one, and TIMEOUT.
func pdfText(ctx context.Context, f *os.File, first, count int) (*pdfDocument, error) {
	select {
	case pdfSlots <- struct{}{}:
		defer func() { <-pdfSlots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	timed, cancel := context.WithTimeout(ctx, pdfDeadline)
	defer cancel()
	out, err := runPDFWorker(timed, f, first, count)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if timed.Err() != nil {
		return nil, toolerr.New(toolerr.Timeout, "reading the PDF took longer than %s; ask for fewer pages", pdfDeadline)
	}
	var document pdfDocument
	if err != nil || json.Unmarshal(out, &document) != nil {
		return nil, toolerr.New(toolerr.BinaryFile, "the PDF is damaged or too complex: its parser failed (%s); use hex=true to see its bytes", workerFailure(err))
	}
	if document.Error != "" {
		return nil, toolerr.New(document.Code, "%s", document.Error)
	}
	return &document, nil
}

// runPDFWorker runs a worker and returns its standard output. It returns an
// *exec.ExitError if the worker failed, and errTooMuchOutput for more than 8*maxPDFText
// bytes.
func runPDFWorker(ctx context.Context, f *os.File, first, count int) ([]byte, error) {
	self := "/proc/self/exe" // valid even if the binary was replaced since
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = []string{fmt.Sprintf("%s=%d %d", pdfWorkerEnv, first, count), "GOTRACEBACK=none"}
	if root := os.Getenv("SYSTEMROOT"); root != "" {
		cmd.Env = append(cmd.Env, "SYSTEMROOT="+root)
	}
	cmd.Stdin = f
	var out bytes.Buffer
	cmd.Stdout = &boundedWriter{to: &out, left: 8 * maxPDFText}
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	return out.Bytes(), err
}

// workerFailure describes for the user how a worker failed. err is the error of
// runPDFWorker; nil means that its output could not be read.
func workerFailure(err error) string {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == exitMemory:
		return "it needs too much memory"
	case errors.As(err, &exit):
		return "it crashed"
	case errors.Is(err, errTooMuchOutput):
		return "its output is too long"
	case err != nil:
		return "it could not run"
	}
	return "its output is incomplete"
}

// errTooMuchOutput is the error of a boundedWriter.
var errTooMuchOutput = errors.New("too much output")

// boundedWriter is a writer that passes on at most left bytes; writing more is
// errTooMuchOutput.
type boundedWriter struct {
	to   io.Writer
	left int
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, errTooMuchOutput
	}
	w.left -= len(p)
	return w.to.Write(p)
}

// viewPDF shows the text of the requested pages. It returns INVALID_PARAMS for a section
// or tail, and the errors of pdfText.
func (f *viewedFile) viewPDF(ctx context.Context) (*answer, error) {
	if f.section != "" || f.tail > 0 {
		return nil, toolerr.New(toolerr.InvalidParams, "%s is a PDF: offset and limit select pages; section and tail are not supported", f.shownPath)
	}
	first, count := min(max(f.offset, 1), 1<<30), int64(defaultPages)
	if f.limit > 0 {
		count = min(f.limit, 1<<20)
	}
	document, err := pdfText(ctx, f.File.File, int(first), int(count))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.shownPath, err)
	}
	m := f.newMeta("pdf")
	m.Lines = int64(document.Total)
	if len(document.Pages) == 0 {
		return &answer{text: fmt.Sprintf("%s  pdf  no page %d, %d in total  %s\n", f.shownPath, first, document.Total, f.headerTag()), meta: m}, nil
	}
	room := max(f.budget-noteRoom, f.budget/2)
	var text strings.Builder
	shown := 0
	for _, page := range document.Pages {
		block := renderPDFPage(page)
		if text.Len()+len(block) > room {
			if shown > 0 {
				break
			}
			block = truncate(block, max(room-80, 80)) + "\nnote: the rest of this page is cut\n"
		}
		text.WriteString(block)
		shown++
	}
	m.First, m.Last = int64(document.Pages[0].Number), int64(document.Pages[shown-1].Number)
	if m.Last < m.Lines {
		m.NextOffset = m.Last + 1
		m.Truncated = f.limit == 0 || m.Last < min(first+count-1, m.Lines)
	}
	header := fmt.Sprintf("%s  pdf  pages %d-%d of %d  %d bytes  %s\n", f.shownPath, m.First, m.Last, document.Total, f.Stat.Size, f.headerTag())
	if m.Truncated {
		fmt.Fprintf(&text, "note: %d more pages; next: view offset=%d\n", m.Lines-m.Last, m.NextOffset)
	}
	return &answer{text: header + text.String(), meta: m}, nil
}

// renderPDFPage returns a page with its number as a heading.
func renderPDFPage(page pdfPage) string {
	body := strings.TrimRight(page.Text, "\n")
	if strings.TrimSpace(body) == "" {
		body = "(no text on this page: it may be a scanned image)"
	}
	if page.Fault != "" {
		body += "\n(" + page.Fault + ")"
	}
	return fmt.Sprintf("page %d\n%s\n", page.Number, body)
}
