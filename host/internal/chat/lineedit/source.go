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

	once     sync.Once
	requests chan struct{}   // a request starts one read
	results  chan readResult // result of each read
	reading  bool            // a read is running, and no caller waits for it
	rest     []byte          // bytes after the last line of ReadLine
}

// A readResult is the result of one read.
type readResult struct {
	text []byte
	err  error
}

// NewSource returns a source of the bytes of from. It is used by one goroutine at a
// time, which closes it.
func NewSource(from io.Reader) *Source {
	return &Source{from: from, requests: make(chan struct{}), results: make(chan readResult, 1)}
}

// Close ends the source, which must not be used afterwards. A read that is running ends
// with the terminal or pipe.
func (s *Source) Close() { close(s.requests) }

// readLoop reads once for each request. It ends after Close or an error of the reader.
func (s *Source) readLoop() {
	buf := make([]byte, 4096)
	for range s.requests {
		n, err := s.from.Read(buf)
		s.results <- readResult{bytes.Clone(buf[:n]), err}
		if err != nil {
			return
		}
	}
}

// read waits for bytes and returns the available ones, at least one. It returns the error
// of ctx if that ends first; the bytes then stay for the next read. At the end of the input
// it returns io.EOF.
func (s *Source) read(ctx context.Context) ([]byte, error) {
	if len(s.rest) > 0 {
		held := s.rest
		s.rest = nil
		return held, nil
	}
	s.once.Do(func() { go s.readLoop() })
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !s.reading {
			s.reading = true
			s.requests <- struct{}{}
		}
		select {
		case c := <-s.results:
			s.reading = false
			if c.err != nil { // later reads return the same error
				s.reading = true
				s.results <- readResult{err: c.err}
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

// discard discards bytes that were read already, but not the end of the input.
func (s *Source) discard() {
	s.rest = nil
	select {
	case c := <-s.results:
		if s.reading = c.err != nil; s.reading {
			s.results <- readResult{err: c.err}
		}
	default:
	}
}

// ReadLine returns the next line, as of a pipe, without its end. It returns io.EOF at
// the end of the input, and an error for a line of more than maxLine bytes.
func (s *Source) ReadLine(ctx context.Context) (string, error) {
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
			s.rest = after
			return string(bytes.TrimSuffix(line, []byte{'\r'})), nil
		}
	}
}
