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

// A PDF is read by a process of its own: this binary once more, with the open
// file as its standard input and nothing else. The format is old and loose,
// and a hostile file can make any parser loop, recurse or allocate without
// end; a process can be killed, a goroutine cannot.
const (
	pdfWorkerEnv = "TOOLROOM_VIEW_PDF"
	pdfDeadline  = 20 * time.Second
	// maxPDFText bounds what a worker hands back.
	maxPDFText = 1 << 20
	// maxPDFMemory is where a worker gives up.
	maxPDFMemory = 256 << 20
)

// pdfWorkers bounds how many PDFs are read at once.
var pdfWorkers = make(chan struct{}, 2)

// pdfPage is the text of one page.
type pdfPage struct {
	Number int    `json:"number"` // from 1
	Text   string `json:"text"`   // lines end in \n; empty for a scanned page
	Fault  string `json:"fault,omitempty"`
}

// pdfDocument is what a worker answers.
type pdfDocument struct {
	Total int       `json:"total"` // pages the document has
	Pages []pdfPage `json:"pages"`
	// Cut says that the text bound was met: the page after the last one is
	// where to go on.
	Cut   bool         `json:"cut,omitempty"`
	Code  toolerr.Code `json:"code,omitempty"`
	Error string       `json:"error,omitempty"`
}

// isPDF reports whether the first bytes of a file (1 KiB is what readers
// allow) are those of a PDF.
func isPDF(head []byte) bool {
	at := bytes.Index(head[:min(len(head), 1024)], []byte("%PDF-"))
	if at < 0 {
		return false
	}
	// Before the header only white space or a BOM counts: a text that
	// speaks of "%PDF-" is a text.
	return len(bytes.Trim(head[:at], "\xef\xbb\xbf \t\r\n\x00")) == 0
}

// pdfText extracts the text of count pages from page first on. f must be a
// regular file; it is handed to the worker as it is.
func pdfText(ctx context.Context, f *os.File, first, count int) (*pdfDocument, error) {
	select {
	case pdfWorkers <- struct{}{}:
		defer func() { <-pdfWorkers }()
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
		return nil, toolerr.New(toolerr.BinaryFile, "the PDF is damaged or too complex: its parser failed (%s); use hex=true to see its bytes", workerFault(err))
	}
	if document.Error != "" {
		return nil, toolerr.New(document.Code, "%s", document.Error)
	}
	return &document, nil
}

func runPDFWorker(ctx context.Context, f *os.File, first, count int) ([]byte, error) {
	self := "/proc/self/exe" // also when the binary was rebuilt meanwhile
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

// workerFault says how a worker ended, without the system's details.
func workerFault(err error) string {
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() == exitMemory:
		return "it needs too much memory"
	case errors.As(err, &exit):
		return "it crashed"
	case err != nil:
		return strings.TrimSpace(err.Error())
	}
	return "no error output"
}

// boundedWriter fails once more than left bytes are written.
type boundedWriter struct {
	to   io.Writer
	left int
}

func (w *boundedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, errors.New("too much output")
	}
	w.left -= len(p)
	return w.to.Write(p)
}
