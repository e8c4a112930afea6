package lineedit

import (
	"bytes"
	"context"
	"strings"
	"time"
	"unicode/utf8"
)

// An action is the effect of a key on the text or the editor.
type action int

const (
	nothing action = iota
	insert         // key.text
	enter
	newline
	interrupt
	eof // or delete, if there is text
	suspend
	left
	right
	up
	down
	earlier // previous history entry, wherever the cursor is
	later
	home
	end
	wordLeft
	wordRight
	backspace
	remove
	removeWordLeft
	removeWordRight
	removeLeft
	removeRight
	yank
	clear
	complete
	escape
)

// A key is a pressed key: an action, with the text to insert for the action insert.
type key struct {
	action action
	text   string
}

// controlAction returns the action of a control character.
func controlAction(b byte) action {
	switch b {
	case 1:
		return home
	case 2:
		return left
	case 3:
		return interrupt
	case 4:
		return eof
	case 5:
		return end
	case 6:
		return right
	case '\b', 127:
		return backspace
	case '\t':
		return complete
	case '\n':
		return newline
	case 11:
		return removeRight
	case 12:
		return clear
	case '\r':
		return enter
	case 14:
		return later
	case 16:
		return earlier
	case 21:
		return removeLeft
	case 23:
		return removeWordLeft
	case 25:
		return yank
	case 26:
		return suspend
	}
	return nothing
}

// sequenceAction returns the action of the escape sequence with s after the escape
// character.
func sequenceAction(s string) action {
	switch s {
	case "\r", "\n", "[13;2u", "[13;3u", "[27;2;13~", "[27;3;13~": // Enter with Alt; some terminals send it for Shift, too
		return newline
	case "b", "[1;5D", "[1;3D":
		return wordLeft
	case "f", "[1;5C", "[1;3C":
		return wordRight
	case "d", "[3;5~":
		return removeWordRight
	case "\x7f", "\b":
		return removeWordLeft
	case "[A":
		return up
	case "[B":
		return down
	case "[C":
		return right
	case "[D":
		return left
	case "[H", "[1~", "[7~":
		return home
	case "[F", "[4~", "[8~":
		return end
	case "[3~":
		return remove
	}
	return nothing
}

const (
	pasteBegin = "[200~"
	pasteEnd   = "\x1b[201~"

	maxSequence = 32      // bytes; longer sequences are ignored
	maxPaste    = 1 << 20 // bytes of a paste that are kept

	// sequenceTimeout is the time to wait for the rest of a sequence if Esc alone is a
	// key: terminals send a sequence at once.
	sequenceTimeout = 100 * time.Millisecond
)

// keys decodes the bytes of a terminal into keys.
type keys struct {
	from    *Source
	waiting []byte // bytes that were read and not decoded
	escapes bool   // Esc alone is a key
}

// readByte waits for the next byte of the terminal and returns it. It returns io.EOF at the
// end, and the error of ctx.
func (k *keys) readByte(ctx context.Context) (byte, error) {
	for len(k.waiting) == 0 {
		more, err := k.from.read(ctx)
		if err != nil {
			return 0, err
		}
		k.waiting = more
	}
	b := k.waiting[0]
	k.waiting = k.waiting[1:]
	return b, nil
}

// discard discards bytes that were read and not decoded.
func (k *keys) discard() {
	k.waiting = nil
	k.from.discard()
}

// readKey waits for a key and returns it: with no action for an unknown one. It returns the
// errors of readByte.
func (k *keys) readKey(ctx context.Context) (key, error) {
	b, err := k.readByte(ctx)
	switch {
	case err != nil:
		return key{}, err
	case b == 0x1b:
		return k.readEscape(ctx)
	case b < ' ' || b == 127:
		return key{action: controlAction(b)}, nil
	case b < utf8.RuneSelf:
		return key{insert, string(rune(b))}, nil
	}
	text := []byte{b}
	for !utf8.FullRune(text) {
		if b, err = k.readByte(ctx); err != nil {
			return key{}, err
		}
		text = append(text, b)
	}
	if r, _ := utf8.DecodeRune(text); r == utf8.RuneError {
		return key{}, nil
	}
	return key{insert, string(text)}, nil
}

// readEscape returns the key of the escape sequence whose escape character was read: the
// action escape if no sequence follows, and nothing for an unknown sequence.
func (k *keys) readEscape(ctx context.Context) (key, error) {
	alone, err := k.isEscapeAlone(ctx)
	if err != nil || alone {
		return key{action: escape}, err
	}
	b, err := k.readByte(ctx)
	for err == nil && b == 0x1b { // Esc was pressed before
		b, err = k.readByte(ctx)
	}
	if err != nil {
		return key{}, err
	}
	seq := []byte{b}
	switch b {
	case 'O': // of keypads: one more character
		if b, err = k.readByte(ctx); err != nil {
			return key{}, err
		}
		seq = []byte{'[', b}
	case '[':
		for len(seq) < maxSequence {
			if b, err = k.readByte(ctx); err != nil {
				return key{}, err
			}
			if seq = append(seq, b); b >= 0x40 && b <= 0x7e {
				break
			}
		}
	}
	if string(seq) == pasteBegin {
		return k.readPaste(ctx)
	}
	return key{action: sequenceAction(string(seq))}, nil
}

// isEscapeAlone reports whether Esc was pressed alone: no byte follows within
// sequenceTimeout. It is false if Esc alone is no key.
func (k *keys) isEscapeAlone(ctx context.Context) (bool, error) {
	if !k.escapes || len(k.waiting) > 0 {
		return false, nil
	}
	soon, cancel := context.WithTimeout(ctx, sequenceTimeout)
	defer cancel()
	more, err := k.from.read(soon)
	switch {
	case err == nil:
		k.waiting = more
		return false, nil
	case ctx.Err() == nil && soon.Err() != nil:
		return true, nil
	}
	return false, err
}

// readPaste returns a pasted text, up to pasteEnd, with its line breaks as \n. It keeps at
// most maxPaste bytes.
func (k *keys) readPaste(ctx context.Context) (key, error) {
	var text []byte
	for !bytes.HasSuffix(text, []byte(pasteEnd)) {
		b, err := k.readByte(ctx)
		if err != nil {
			return key{}, err
		}
		if len(text) >= maxPaste+len(pasteEnd) { // the rest up to the end mark is dropped
			text = append(text[:maxPaste], text[maxPaste+1:]...)
		}
		text = append(text, b)
	}
	pasted := string(text[:len(text)-len(pasteEnd)])
	pasted = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(pasted)
	return key{insert, strings.ToValidUTF8(pasted, "\ufffd")}, nil
}
