package lineedit

import (
	"bytes"
	"context"
	"io"
	"sync"
)

// A Source reads from a terminal or a pipe only when a caller waits for data, so that
// text typed meanwhile stays in the terminal. A running read of a terminal cannot be
// cancelled: if its caller stops waiting, the next caller gets its result.
type Source struct {
	from io.Reader

	once sync.Once
	want chan struct{}
	got  chan chunk
	busy bool // a read is running, and no caller waits for it
	held []byte
}

// chunk is the result of one read.
type chunk struct {
	text []byte
	err  error
}

// NewSource returns a source of the bytes of from. It is used by one goroutine at a
// time, which closes it.
func NewSource(from io.Reader) *Source {
	return &Source{from: from, want: make(chan struct{}), got: make(chan chunk, 1)}
}

// Close ends the source, which must not be used afterwards. A read that is running ends
// with the terminal or pipe.
func (s *Source) Close() { close(s.want) }

// serve reads once for each request. It ends after Close or an error of the reader.
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

// read returns the available bytes, at least one.
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
			if c.err != nil { // later reads return the same error
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

// forget discards bytes that were read already, but not the end of the input.
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

// Line returns the next line without its end, of at most maxLine bytes, as from a
// pipe. At the end of the input it returns io.EOF.
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
