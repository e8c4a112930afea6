package oauth

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// maxPasted bounds a pasted address, in bytes.
const maxPasted = 64 << 10

// Keys of a terminal that sends each key at once.
const (
	keyEnd       = 0x04 // Ctrl-D
	keyBackspace = 0x08
	keyKill      = 0x15 // Ctrl-U
	keyDelete    = 0x7f
)

// ReadPasted reads the first line from in that is not empty, of at most 64 KiB, without its end and
// what surrounds an address: spaces, quotation marks, and the marks of a terminal around pasted
// text. The keys that correct a line have their effect, for a terminal that sends each key at once;
// Ctrl-D ends the line. echo, if not nil, then gets what the terminal shows. If ctx ends before, it
// returns ctx.Err(), and the reading continues in the background.
func ReadPasted(ctx context.Context, in io.Reader, echo io.Writer) (string, error) {
	type line struct {
		text string
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := readPasted(in, echo)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return l.text, l.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// readPasted does the same as ReadPasted without a context.
func readPasted(in io.Reader, echo io.Writer) (string, error) {
	if echo == nil {
		echo = io.Discard
	}
	show := func(text string) { io.WriteString(echo, text) } //nolint:errcheck // the line counts
	var line []byte
	one := make([]byte, 1)
	for len(line) < maxPasted {
		n, err := in.Read(one)
		if n == 0 && err == nil {
			continue
		}
		key := one[0]
		switch {
		case n == 0 || key == '\n' || key == keyEnd:
			text := trimPasted(string(line))
			if n == 0 && text == "" {
				return "", fmt.Errorf("reading the pasted address: %w", err)
			}
			if key == keyEnd && text == "" {
				return "", fmt.Errorf("reading the pasted address: %w", io.EOF)
			}
			show("\n")
			if text != "" {
				return text, nil
			}
			line = line[:0]
			continue
		case key == keyBackspace || key == keyDelete:
			if len(line) > 0 {
				line = line[:len(line)-1]
				show("\b \b")
			}
			continue
		case key == keyKill:
			for range line {
				show("\b \b")
			}
			line = line[:0]
			continue
		}
		line = append(line, key)
		if key >= ' ' {
			show(string(one))
		}
	}
	return trimPasted(string(line)), nil
}

// pasteMarks removes the marks that terminals send around pasted text in bracketed paste mode.
var pasteMarks = strings.NewReplacer("\x1b[200~", "", "\x1b[201~", "")

// trimPasted returns a pasted line without what surrounds the address.
func trimPasted(line string) string {
	return strings.Trim(pasteMarks.Replace(line), " \t\r\n\"'`<>")
}
