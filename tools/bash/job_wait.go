package main

import (
	"bytes"
	"context"
	"regexp"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// settled is the time without output after which a job's reply to an input
// counts as complete.
const settled = 150 * time.Millisecond

// waiting describes what wait waits for: a match of pattern, else a reply to
// the input, else the end of the job.
type waiting struct {
	from    int64
	most    time.Duration
	pattern *regexp.Regexp
	reply   bool
}

// wait returns when the awaited event has happened, when the job has ended or
// waits for input, or when w.most has passed.
func (j *job) wait(ctx context.Context, w waiting) error {
	timer := time.NewTimer(w.most)
	defer timer.Stop()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	quiet := quietness{output: j.output, process: j.process}
	search := matcher{output: j.output, at: w.from}
	var whole <-chan time.Time
	for {
		changed := j.output.Changed()
		switch {
		case w.pattern != nil:
			if search.found(w.pattern) {
				return nil
			}
		case w.reply && j.output.Size() > w.from:
			whole = time.After(settled)
		}
		select {
		case <-j.process.Done():
			return nil
		case <-timer.C:
			return nil
		case <-whole:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		case <-look.C:
			if quiet.want().any() {
				return nil
			}
			j.progress(ctx)
		}
	}
}

// matcher searches new output for a pattern at each call.
type matcher struct {
	output *proc.Output
	at     int64 // offset up to which the output has been searched
	tail   []byte
	done   bool
}

func (s *matcher) found(pattern *regexp.Regexp) bool {
	buf := make([]byte, 64<<10)
	for !s.done {
		n, skipped, err := s.output.Read(s.at, buf)
		if err != nil || n == 0 {
			return false
		}
		s.at += skipped + int64(n)
		text := append(s.tail, buf[:n]...)
		s.done = pattern.Match(text)
		tail := text[max(0, len(text)-patternTail):]
		if at := bytes.IndexByte(tail, '\n'); len(tail) < len(text) && at >= 0 {
			tail = tail[at:] // otherwise ^ would match in the middle of a line
		}
		s.tail = append([]byte(nil), tail...)
	}
	return true
}

// patternTail is the number of earlier bytes that are searched again for
// wait_for with new output, so that a match across two reads is found.
const patternTail = 4 << 10
