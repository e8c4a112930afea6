package chat

import (
	"fmt"
	"io"
	"sync"
)

// errorKeepingWriter is standard output that is no terminal. It keeps the first error of
// writing for the exit status.
type errorKeepingWriter struct {
	to io.Writer

	mu  sync.Mutex
	err error // the first
}

// Write writes text to the underlying writer, and keeps the first error.
func (s *errorKeepingWriter) Write(text []byte) (int, error) {
	n, err := s.to.Write(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
	return n, err
}

// firstError returns the first error of a write; nil: all was written.
func (s *errorKeepingWriter) firstError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		return nil
	}
	return fmt.Errorf("the answer could not be printed: %w", s.err)
}
