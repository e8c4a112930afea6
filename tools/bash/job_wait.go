package main

import (
	"bytes"
	"context"
	"regexp"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/proc"
)

// replyTime is the time without output after which a job's reply to an input
// counts as complete.
const replyTime = 150 * time.Millisecond

// waitCondition says when wait returns: at a match of pattern, if set; otherwise, if
// reply is set, at a reply to the input; otherwise at the end of the job. In any case it
// returns after limit.
type waitCondition struct {
	from    int64          // offset from which output counts
	limit   time.Duration  // of the wait
	pattern *regexp.Regexp // nil: none
	reply   bool           // wait for a reply
}

// wait returns nil when the condition is met, when the job has ended or waits
// for input, or when w.limit has passed. If ctx is cancelled, it returns the
// cause.
func (j *job) wait(ctx context.Context, w waitCondition) error {
	timer := time.NewTimer(w.limit)
	defer timer.Stop()
	look := time.NewTicker(500 * time.Millisecond)
	defer look.Stop()
	quiet := waitDetector{output: j.output, process: j.process}
	search := outputMatcher{output: j.output, at: w.from}
	var whole <-chan time.Time
	for {
		changed := j.output.Changed()
		switch {
		case w.pattern != nil:
			if search.search(w.pattern) {
				return nil
			}
		case w.reply && j.output.Size() > w.from:
			whole = time.After(replyTime)
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
			if quiet.check().isSet() {
				return nil
			}
			j.reportProgress(ctx)
		}
	}
}

// outputMatcher searches an output for a pattern. It reads each byte once.
type outputMatcher struct {
	output  *proc.Output
	at      int64  // offset up to which the output has been searched
	tail    []byte // the last bytes searched
	matched bool   // the pattern has matched
}

// search searches the output that is new since the previous call, and reports
// whether the pattern has matched so far.
func (s *outputMatcher) search(pattern *regexp.Regexp) bool {
	buf := make([]byte, 64<<10)
	for !s.matched {
		n, skipped, err := s.output.Read(s.at, buf)
		if err != nil || n == 0 {
			return false
		}
		s.at += skipped + int64(n)
		text := append(s.tail, buf[:n]...)
		s.matched = pattern.Match(text)
		tail := text[max(0, len(text)-patternTail):]
		if at := bytes.IndexByte(tail, '\n'); len(tail) < len(text) && at >= 0 {
			tail = tail[at:] // otherwise ^ would match in the middle of a line
		}
		s.tail = append([]byte(nil), tail...)
	}
	return true
}

// patternTail is the number of earlier bytes that are searched again with new
// output, so that a match across two reads is found.
const patternTail = 4 << 10
