package main

import (
	"fmt"
	"strings"

	"github.com/toolroom-mcp/toolroom/internal/textfile"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

const (
	// rowBytes is the number of bytes of the file in a row of a hex dump,
	// rowLength that of output bytes, with the line break.
	rowBytes  = 16 // bytes of the file in a row
	rowLength = 79 // bytes of output for a row, including the line break
)

// describeBinary describes a file that cannot be shown as text.
func (f *viewedFile) describeBinary() *answer {
	return &answer{
		text: fmt.Sprintf("%s  binary: %s  %d bytes  %s\nnote: hex=true dumps its bytes, with offset (from 0) and limit in bytes\n",
			f.shownPath, textfile.BinaryType(f.head), f.Stat.Size, f.headerTag()),
		meta: f.newMeta("binary"),
	}
}

// viewHex shows bytes in hexadecimal. offset and limit are in bytes, offset from 0. It
// returns DENIED_PATH for a file with masked values, and INVALID_PARAMS with a section.
func (f *viewedFile) viewHex() (*answer, error) {
	if f.Masked {
		return nil, toolerr.New(toolerr.DeniedPath, "%s holds secrets: its values are masked, so hex is not possible; the user can allow it with --allow-path", f.shownPath)
	}
	if f.section != "" {
		return nil, toolerr.New(toolerr.InvalidParams, "section and hex cannot be combined: give offset and limit in bytes")
	}
	size := f.Stat.Size
	from, count := f.offset, int64(defaultDumpBytes)
	if f.limit > 0 {
		count = f.limit
	}
	if f.tail > 0 {
		from, count = max(0, size-f.tail), f.tail
	}
	m := f.newMeta("binary")
	if from >= size {
		return &answer{text: fmt.Sprintf("%s  no bytes from offset %d, %d in total  hex  %s\n", f.shownPath, from, size, f.headerTag()), meta: m}, nil
	}
	fits := int64(max(f.budget-noteRoom, f.budget/2)/rowLength) * rowBytes
	wanted := from + min(count, size-from)
	end := min(wanted, from+max(fits, rowBytes))
	raw, err := readRange(f, from, end-from)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s  bytes %d-%d of %d  hex  %s\n", f.shownPath, from, end-1, size, f.headerTag())
	for at := 0; at < len(raw); at += rowBytes {
		writeHexRow(&text, from+int64(at), raw[at:min(at+rowBytes, len(raw))])
	}
	m.Truncated = end < wanted || f.limit == 0 && f.tail == 0 && end < size
	if end < size {
		m.NextOffset = end
	}
	if m.Truncated {
		fmt.Fprintf(&text, "note: %d more bytes; next: view hex=true offset=%d\n", size-end, end)
	}
	return &answer{text: text.String(), meta: m}, nil
}

// writeHexRow writes a row in the format of hexdump -C, with the offset of its
// first byte.
func writeHexRow(out *strings.Builder, offset int64, row []byte) {
	fmt.Fprintf(out, "%08x ", offset)
	for i := range rowBytes {
		if i%8 == 0 {
			out.WriteByte(' ')
		}
		if i < len(row) {
			fmt.Fprintf(out, "%02x ", row[i])
		} else {
			out.WriteString("   ")
		}
	}
	out.WriteString(" |")
	for _, c := range row {
		if c < ' ' || c > '~' {
			c = '.'
		}
		out.WriteByte(c)
	}
	out.WriteString("|\n")
}
