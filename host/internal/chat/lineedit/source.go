package lineedit

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// A Source reads from a terminal or a pipe when somebody waits for it, and only
// then, so that what is typed meanwhile stays where it is. Nobody can end a read
// of a terminal that is under way: who stops waiting leaves it to the next who
// waits, or to the end of the program.
type Source struct {
	from io.Reader

	once sync.Once
	want chan struct{}
	got  chan chunk
	busy bool // a read is under way that nobody waits for
	held []byte
}

type chunk struct {
	text []byte
	err  error
}

// NewSource returns a source. It is used by one goroutine at a time.
func NewSource(from io.Reader) *Source {
	return &Source{from: from, want: make(chan struct{}), got: make(chan chunk, 1)}
}

// serve reads each time it is asked to. It ends with the reader.
func (s *Source) serve() {
	buf := make([]byte, 4096)
	for range s.want {
		n, err := s.from.Read(buf)
		s.got <- chunk{bytes.Clone(buf[:n]), err}
		if err != nil {
			return
		}
	}
}

// read returns what there is, at least a byte.
func (s *Source) read(ctx context.Context) ([]byte, error) {
	if len(s.held) > 0 {
		held := s.held
		s.held = nil
		return held, nil
	}
	s.once.Do(func() { go s.serve() })
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !s.busy {
			s.busy = true
			s.want <- struct{}{}
		}
		select {
		case c := <-s.got:
			s.busy = false
			if c.err != nil { // of which there is no more
				s.busy = true
				s.got <- chunk{err: c.err}
			}
			if len(c.text) > 0 {
				return c.text, nil
			}
			if c.err != nil {
				return nil, c.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// forget leaves out what has been read already, but for the end.
func (s *Source) forget() {
	s.held = nil
	select {
	case c := <-s.got:
		if s.busy = c.err != nil; s.busy {
			s.got <- chunk{err: c.err}
		}
	default:
	}
}

// Line returns the next line without its end, of at most maxLine bytes, as from
// a pipe. At the end of what there is it is io.EOF.
func (s *Source) Line(ctx context.Context) (string, error) {
	var line []byte
	for {
		text, err := s.read(ctx)
		if err == io.EOF && len(line) > 0 {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
		before, after, ended := bytes.Cut(text, []byte{'\n'})
		if line = append(line, before...); len(line) > maxLine {
			return "", errTooLong
		}
		if ended {
			s.held = after
			return string(bytes.TrimSuffix(line, []byte{'\r'})), nil
		}
	}
}
