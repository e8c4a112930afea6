package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime/debug"
	"unicode/utf16"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox"
	"github.com/toolroom-mcp/toolroom/pkg/textfile"
)

const (
	// wholeSize is the size up to which a file is read at once, and how much
	// of a larger one is looked at at a time.
	wholeSize = 256 << 10
	// ownSize is how much each worker may hold of a file with long lines, or
	// of one that has to be looked at as a whole.
	ownSize = 2 << 20
	// headSize is how much of a large file's beginning tells that it is binary
	// before it is searched.
	headSize = 8 << 10
	// maxMasked is the size of the largest file whose values are masked, which
	// takes it twice: no settings are larger, and what is stays a secret.
	maxMasked = 8 << 20
	// keyHead is how much of a file tells that it is a private key.
	keyHead = 1 << 10
)

// outcome is what became of a file.
type outcome uint8

// The outcomes.
const (
	searched outcome = iota
	binary
	tooLarge
	unreadable
	secret
	special
	outcomes
)

// slot is the right to hold more than ownSize of a file in memory, and that
// memory. There is one in the process.
type slot struct {
	free chan struct{}
	buf  []byte // of who has the slot
}

func newSlot() *slot { return &slot{free: make(chan struct{}, 1)} }

func (s *slot) take(ctx context.Context) error {
	select {
	case s.free <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// grow returns space of the given size that begins with text.
func (s *slot) grow(size int, text []byte) []byte {
	if cap(s.buf) < size {
		s.buf = make([]byte, 0, size)
	}
	return append(s.buf[:0], text...)
}

func (s *slot) release() { <-s.free }

// drop gives the memory back to the system at the end of a call, unless
// another call uses it.
func (s *slot) drop() {
	select {
	case s.free <- struct{}{}:
	default:
		return
	}
	if s.buf != nil {
		s.buf = nil
		debug.FreeOSMemory()
	}
	<-s.free
}

// space keeps the buffers of searches that have ended, for the next ones.
type space struct{ free chan []byte }

// maxSpare is how many buffers are kept.
const maxSpare = maxWorkers

func newSpace() *space { return &space{make(chan []byte, maxSpare)} }

func (s *space) take() []byte {
	select {
	case buf := <-s.free:
		return buf
	default:
		return make([]byte, 0, wholeSize+1)
	}
}

// giveBack keeps a buffer, unless it has grown for a large file.
func (s *space) giveBack(buf []byte) {
	if buf == nil || cap(buf) > 2*wholeSize {
		return
	}
	select {
	case s.free <- buf:
	default:
	}
}

// wide returns the encoding that a byte order mark of UTF-16 tells, or "".
func wide(head []byte) textfile.Encoding {
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe")):
		return textfile.UTF16LE
	case bytes.HasPrefix(head, []byte("\xfe\xff")):
		return textfile.UTF16BE
	}
	return ""
}

// plain returns a whole file's content as it is searched: decoded, without
// byte order mark, values masked. It shares raw's memory where it can.
func plain(raw []byte, masked bool) []byte {
	if e := wide(raw); e != "" {
		raw = []byte(e.Decode(raw[2:]))
	} else {
		raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
	}
	if masked {
		raw = sandbox.MaskSecrets(raw)
	}
	return raw
}

// feed hands out a file's text in windows of whole lines, so that a file of
// any size takes bounded memory, its longest line aside.
type feed struct {
	in    io.Reader // decoded
	large *slot
	limit int64 // bytes of text to take at most
	held  int64 // bytes of it in memory at most
	whole bool  // in one window
	size  int64 // of the file, as far as known
	buf   []byte
	from  int // of what is not handed out yet
	end   bool
	taken int64
	taker bool   // it has the slot
	own   []byte // the space it began with
}

// newFeed begins a file in encoding e, or "" for UTF-8 or what a byte order
// mark tells, given its first bytes. buf is space to use.
func newFeed(r io.Reader, head []byte, e textfile.Encoding, large *slot, buf []byte) *feed {
	in := io.MultiReader(bytes.NewReader(head), r)
	if e != "" {
		in = e.NewReader(in)
	} else if e := wide(head); e != "" {
		in = &wideReader{in: io.MultiReader(bytes.NewReader(head[2:]), r), encoding: e}
	} else if rest, ok := bytes.CutPrefix(head, []byte("\xef\xbb\xbf")); ok {
		in = io.MultiReader(bytes.NewReader(rest), r)
	}
	return &feed{in: in, large: large, buf: buf[:0], own: buf[:0]}
}

// errTooLarge is the error for a file that grew beyond the limit, or has a
// line that does.
var errTooLarge = errors.New("the file is too large")

// next returns the next window, which serves until the call after; io.EOF
// behind the last.
func (f *feed) next(ctx context.Context) ([]byte, error) {
	rest := copy(f.buf, f.buf[f.from:])
	f.buf, f.from = f.buf[:rest], 0
	looked := 0
	for !f.end {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := f.room(ctx); err != nil {
			return nil, err
		}
		n, err := f.in.Read(f.buf[len(f.buf):cap(f.buf)])
		f.buf = f.buf[:len(f.buf)+n]
		if f.taken += int64(n); f.taken > f.limit {
			return nil, errTooLarge
		}
		if err == io.EOF {
			f.end = true
			break
		}
		if err != nil {
			return nil, err
		}
		if len(f.buf) < cap(f.buf) || f.whole {
			continue
		}
		if last := bytes.LastIndexByte(f.buf[looked:], '\n'); last >= 0 {
			f.from = looked + last + 1
			return f.buf[:f.from], nil
		}
		looked = len(f.buf)
	}
	if f.from = len(f.buf); f.from == 0 {
		return nil, io.EOF
	}
	return f.buf, nil
}

// room makes space to read into. Beyond ownSize that takes the slot.
func (f *feed) room(ctx context.Context) error {
	if len(f.buf) < cap(f.buf) {
		return nil
	}
	bigger := max(wholeSize, 2*int64(cap(f.buf)))
	if f.whole || bigger > ownSize {
		bigger = max(bigger, f.size)
	}
	bigger = min(bigger, f.held) + 1
	if bigger <= int64(cap(f.buf)) {
		return errTooLarge
	}
	if bigger <= ownSize {
		f.buf = append(make([]byte, 0, bigger), f.buf...)
		return nil
	}
	if !f.taker {
		if err := f.large.take(ctx); err != nil {
			return err
		}
		f.taker = true
	}
	f.buf = f.large.grow(int(bigger), f.buf)
	return nil
}

// close gives back the slot, and returns the space for further use.
func (f *feed) close() []byte {
	if f.taker {
		f.taker = false
		f.large.release()
		return f.own
	}
	return f.buf
}

// wideReader decodes UTF-16.
type wideReader struct {
	in       io.Reader
	encoding textfile.Encoding
	raw      [64 << 10]byte
	kept     int // bytes at the beginning of raw: half a character
	text     string
	end      error
}

func (w *wideReader) Read(p []byte) (int, error) {
	for w.text == "" {
		if w.end != nil {
			return 0, w.end
		}
		n, err := io.ReadFull(w.in, w.raw[w.kept:])
		n += w.kept
		w.kept = 0
		if err == io.ErrUnexpectedEOF {
			err = io.EOF
		}
		if w.end = err; err == nil {
			whole := n &^ 1
			if whole >= 2 && utf16.IsSurrogate(w.unit(whole-2)) && w.unit(whole-2) < 0xDC00 {
				whole -= 2
			}
			w.text = w.encoding.Decode(w.raw[:whole])
			w.kept = copy(w.raw[:], w.raw[whole:n])
		} else {
			w.text = w.encoding.Decode(w.raw[:n])
		}
	}
	n := copy(p, w.text)
	w.text = w.text[n:]
	return n, nil
}

// unit is the code unit at offset i of raw.
func (w *wideReader) unit(i int) rune {
	if w.encoding == textfile.UTF16BE {
		return rune(w.raw[i])<<8 | rune(w.raw[i+1])
	}
	return rune(w.raw[i+1])<<8 | rune(w.raw[i])
}
