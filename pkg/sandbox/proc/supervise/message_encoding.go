package supervise

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Message is a message between server and supervisor, or an entry of an undo record:
// its length in four bytes, little endian, then its fields. Strings are sent byte by
// byte, since JSON cannot represent names that are not UTF-8, and decoding JSON for the
// first time after a pause takes a tenth of bash's time to run a command.
type Message interface{ fields(*fields) }

// maxMessage bounds a message in bytes. No program can be given arguments that
// long.
const maxMessage = 64 << 20

// AppendMessage appends the encoded message to b.
func AppendMessage(b []byte, r Message) []byte {
	start := len(b)
	f := fields{text: append(b, 0, 0, 0, 0)}
	r.fields(&f)
	binary.LittleEndian.PutUint32(f.text[start:], uint32(len(f.text)-start-4))
	return f.text
}

// ReadMessage decodes the next message into r. It returns io.EOF if the stream ends before a
// message, io.ErrUnexpectedEOF if it ends within one, and another error for a message
// that is too long or of another type.
func ReadMessage(in io.Reader, r Message) error {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size > maxMessage {
		return fmt.Errorf("a record of %d bytes: at most %d are sent", size, maxMessage)
	}
	f := fields{text: make([]byte, size), reading: true}
	if _, err := io.ReadFull(in, f.text); err != nil {
		return io.ErrUnexpectedEOF
	}
	r.fields(&f)
	if f.malformed || len(f.text) > 0 {
		return fmt.Errorf("a record that is no %T", r)
	}
	return nil
}

// fields encodes or decodes the fields of a record, one after the other.
// Encoding does not modify the record: other goroutines may encode it at the
// same time.
type fields struct {
	text      []byte
	reading   bool
	malformed bool // the decoded data is malformed
}

// number encodes *n, or decodes into it, as 64 bits.
func (f *fields) number(n *int64) {
	if !f.reading {
		f.text = binary.AppendVarint(f.text, *n)
		return
	}
	value, size := binary.Varint(f.text)
	if f.malformed = f.malformed || size <= 0; !f.malformed {
		*n, f.text = value, f.text[size:]
	}
}

// int encodes *n, or decodes into it, as number does.
func (f *fields) int(n *int) {
	wide := int64(*n)
	if f.number(&wide); f.reading {
		*n = int(wide)
	}
}

// flag encodes *set, or decodes into it, as one byte.
func (f *fields) flag(set *bool) {
	n := 0
	if *set {
		n = 1
	}
	if f.int(&n); f.reading {
		*set = n != 0
	}
}

// string encodes *s, or decodes into it: the length, then any bytes.
func (f *fields) string(s *string) {
	n := len(*s)
	f.int(&n)
	switch {
	case !f.reading:
		f.text = append(f.text, *s...)
	case f.malformed || n < 0 || n > len(f.text):
		f.malformed = true
	default:
		*s, f.text = string(f.text[:n]), f.text[n:]
	}
}

// strings encodes *list, or decodes into it: the length, then each string.
func (f *fields) strings(list *[]string) { each(f, list, f.string) }

// each encodes *list, or decodes into it: the length, then each element by one.
// An empty list is decoded as nil.
func each[T any](f *fields, list *[]T, one func(*T)) {
	n := len(*list)
	if f.int(&n); f.reading {
		if f.malformed = f.malformed || n < 0 || n > len(f.text); f.malformed || n == 0 {
			return
		}
		*list = make([]T, n)
	}
	for i := range *list {
		one(&(*list)[i])
	}
}

// fields implements Message.
func (s *Spec) fields(f *fields) {
	f.string((*string)(&s.Level))
	f.flag(&s.Network)
	f.flag(&s.Egress)
	f.strings(&s.Argv)
	f.string(&s.Dir)
	f.strings(&s.Env)
	f.string(&s.Mark)
	f.flag(&s.Probe)
	for _, limit := range []*int64{&s.Limits.FileBytes, &s.Limits.Files, &s.Limits.Processes, &s.Limits.Memory, &s.Limits.CPUPercent, &s.GraceMS, &s.WaitMS} {
		f.number(limit)
	}
	each(f, &s.Roots, func(root *Root) {
		f.string(&root.Path)
		f.flag(&root.ReadOnly)
	})
	f.strings(&s.Writable)
	f.string(&s.Temp)
	f.string(&s.Home)
	f.strings(&s.Mask)
	each(f, &s.Pinned, func(p *Pinned) {
		f.string(&p.Path)
		f.number(&p.Dev)
		f.number(&p.Ino)
		f.int(&p.Held)
	})
	f.int(&s.Held)
	f.strings(&s.Cover)
	f.strings(&s.Shown)
	f.strings(&s.Guard)
	each(f, &s.Layers, func(l *Layer) {
		f.string(&l.Root)
		f.strings(&l.Lower)
		f.string(&l.Upper)
		f.string(&l.Work)
	})
	f.strings(&s.Sockets)
	f.flag(&s.NoUnix)
	f.flag(&s.Watch)
	f.string(&s.Undo)
	f.int(&s.UndoFiles)
	f.flag(&s.Alike)
	each(f, &s.Drop, f.int)
}

// fields implements Message.
func (m *ControlMessage) fields(f *fields) {
	f.flag(&m.Stop)
	f.int(&m.Signal)
}

// fields implements Message.
func (r *Report) fields(f *fields) {
	f.string(&r.Error)
	f.string(&r.Moved)
	for _, flag := range []*bool{&r.Program, &r.Ready, &r.Ahead, &r.Memory, &r.Exited, &r.Done} {
		f.flag(flag)
	}
	f.string(&r.Name)
	for _, number := range []*int{&r.Started, &r.Status, &r.Left, (*int)(&r.Access)} {
		f.int(number)
	}
}
