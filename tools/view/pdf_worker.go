package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"time"

	"github.com/ledongthuc/pdf"

	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

// exitMemory is the exit status of a worker that exceeded maxPDFMemory.
const exitMemory = 3

// runIfPDFWorker runs this process as a PDF worker and does not return, if it
// was started as a worker. main calls it first.
func runIfPDFWorker() {
	order := os.Getenv(pdfWorkerEnv)
	if order == "" {
		return
	}
	var first, count int
	if _, err := fmt.Sscanf(order, "%d %d", &first, &count); err != nil {
		os.Exit(2)
	}
	debug.SetMemoryLimit(maxPDFMemory / 2)
	debug.SetMaxStack(32 << 20)
	go watchMemory()
	// The parent kills a worker that takes too long; this ends an orphan.
	time.AfterFunc(pdfDeadline+time.Second, func() { os.Exit(4) })
	info, err := os.Stdin.Stat()
	if err != nil {
		os.Exit(2)
	}
	if err := json.NewEncoder(os.Stdout).Encode(readPDF(os.Stdin, info.Size(), first, count)); err != nil {
		os.Exit(2)
	}
	os.Exit(0)
}

// watchMemory checks every 10 ms how much memory the process has, and exits with
// exitMemory above maxPDFMemory, before a hostile file uses up the machine's
// memory. It does not return: run it in a goroutine.
func watchMemory() {
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(10 * time.Millisecond) {
		metrics.Read(sample)
		if sample[0].Value.Uint64()-sample[1].Value.Uint64() > maxPDFMemory {
			os.Exit(exitMemory)
		}
	}
}

// readPDF extracts the text of count pages starting with page first. Errors are
// in the document.
func readPDF(file io.ReaderAt, size int64, first, count int) (document *pdfDocument) {
	fail := func(code toolerr.Code, format string, args ...any) *pdfDocument {
		return &pdfDocument{Code: code, Error: fmt.Sprintf(format, args...)}
	}
	defer func() {
		if fault := recover(); fault != nil {
			document = fail(toolerr.BinaryFile, "the PDF is damaged: %s; use hex=true to see its bytes", shortMessage(fault))
		}
	}()
	reader, err := openPDF(file, size)
	switch {
	case errors.Is(err, pdf.ErrInvalidPassword), err != nil && strings.Contains(err.Error(), "ncrypt"):
		return fail(toolerr.PermissionDenied, "the PDF is encrypted and needs a password: decrypt it with another program first")
	case err != nil:
		return fail(toolerr.BinaryFile, "the PDF is damaged: %s; use hex=true to see its bytes", shortMessage(err))
	}
	pages, total := findPDFPages(reader, first, count)
	document = &pdfDocument{Total: total, Pages: []pdfPage{}}
	room := maxPDFText
	for i, page := range pages {
		text, fault := pdfPageText(page, room)
		room -= len(text)
		document.Pages = append(document.Pages, pdfPage{Number: first + i, Text: text, Fault: fault})
		if room <= 0 {
			document.Cut = i+1 < len(pages)
			break
		}
	}
	return document
}

// shortMessage returns the message of an error or panic, cut to 160 bytes.
func shortMessage(fault any) string {
	text := strings.TrimPrefix(fmt.Sprint(fault), "malformed PDF: ")
	if len(text) > 160 {
		text = strings.ToValidUTF8(text[:160], "") + "…"
	}
	return text
}

// openPDF opens a file as common readers do: with junk before the header, any version in
// it, and junk after the end. size is the size of the file. It returns the error of
// reading, or of a file that is no PDF.
func openPDF(file io.ReaderAt, size int64) (*pdf.Reader, error) {
	head := make([]byte, min(size, 1024))
	if _, err := file.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	start := max(0, bytes.Index(head, []byte("%PDF-")))
	tail := make([]byte, min(size, 64<<10))
	if _, err := file.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return nil, err
	}
	end := size
	if at := bytes.LastIndex(tail, []byte("%%EOF")); at >= 0 {
		end = size - int64(len(tail)) + int64(at) + 5
	}
	body := io.NewSectionReader(file, int64(start), end-int64(start))
	return pdf.NewReader(anyVersion{body}, body.Size())
}

// anyVersion is a reader of a PDF that replaces the version in the header by
// the one that the library requires. The structure is the same in all versions;
// version 2.0 changed only parts that are not used here.
type anyVersion struct{ io.ReaderAt }

// ReadAt implements io.ReaderAt.
func (r anyVersion) ReadAt(p []byte, off int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(p, off)
	if off == 0 && n >= 9 {
		copy(p, "%PDF-1.7\n")
	}
	return n, err
}

// findPDFPages walks the page tree, because its counts may be wrong and its
// nodes may form a cycle. total is the number of pages in the document.
func findPDFPages(reader *pdf.Reader, first, count int) (pages []pdf.Page, total int) {
	const maxDepth, maxNodes = 64, 200_000
	nodes := 0
	var walk func(node pdf.Value, depth int)
	walk = func(node pdf.Value, depth int) {
		if nodes++; depth > maxDepth || nodes > maxNodes || node.Kind() != pdf.Dict {
			return
		}
		kids := node.Key("Kids")
		if kids.Kind() != pdf.Array {
			total++
			if total >= first && len(pages) < count {
				pages = append(pages, pdf.Page{V: node})
			}
			return
		}
		// After the requested pages, the declared counts are good
		// enough.
		if declared := node.Key("Count").Int64(); len(pages) == count && declared > 0 && declared < 1_000_000 {
			total += int(declared)
			return
		}
		if declared := node.Key("Count").Int64(); declared > 0 && total+int(declared) < first && declared < 1_000_000 {
			total += int(declared)
			return
		}
		for i := range kids.Len() {
			if len(pages) == count && depth == 0 {
				if rest := int(node.Key("Count").Int64()); rest > total && rest < 1_000_000 {
					total = rest
					return
				}
			}
			walk(kids.Index(i), depth+1)
		}
	}
	walk(reader.Trailer().Key("Root").Key("Pages"), 0)
	return pages, total
}
