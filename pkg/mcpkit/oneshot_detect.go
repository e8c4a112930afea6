package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// detectPatience is how long a beginning that is no JSON object waits for
// more. A pipe that ends with it was one bad call; one that stays open has a
// client at the other end, who is to be told now.
const detectPatience = 250 * time.Millisecond

type mode int

const (
	modeServe   mode = iota // JSON-RPC, or nothing at all
	modeOneShot             // objects without a jsonrpc member, or no JSON
)

// detect finds out what stdin carries, by its first JSON object: one with a
// member jsonrpc is a message, another one is a call. Lines before it that
// are no JSON do not count. It returns the whole input. With patience
// unlimited it waits for the end of a beginning however long that takes.
func detect(ctx context.Context, stdin io.Reader, patient bool) (io.Reader, mode) {
	src := newChunks(stdin)
	var seen []byte // without a byte order mark
	all := func() io.Reader { return io.MultiReader(bytes.NewReader(seen), src) }
	judged, marked := 0, false
	for {
		if worthJudging(seen, judged) || src.ended {
			judged = len(seen)
			if verdict := judge(seen, src.ended); verdict != undecided {
				return all(), verdict.mode()
			}
		}
		var limit <-chan time.Time
		if !patient && len(bytes.TrimSpace(seen)) > 0 {
			limit = time.After(detectPatience)
		}
		select {
		case <-src.request():
			seen = append(seen, src.take()...)
			if rest, ok := bytes.CutPrefix(seen, []byte("\xef\xbb\xbf")); ok && !marked {
				seen, marked = rest, true
			}
		case <-limit:
			if complete(seen) {
				return all(), modeServe
			}
			// A long line still arrives: wait for its end.
			patient = true
		case <-ctx.Done():
			return all(), modeServe
		}
	}
}

// worthJudging keeps the work for a long object that arrives in many pieces
// from growing with the square of its length: a long beginning is looked at
// when it seems to end, and when it has doubled.
func worthJudging(seen []byte, judged int) bool {
	const short = 64 << 10
	if len(seen) <= short || len(seen) >= 2*judged {
		return true
	}
	end := bytes.TrimRight(seen, " \t\r\n")
	return len(end) > 0 && (end[len(end)-1] == '}' || end[len(end)-1] == ']')
}

// complete reports whether what was seen ends with a line's end.
func complete(seen []byte) bool { return len(seen) > 0 && seen[len(seen)-1] == '\n' }

type verdict int

const (
	undecided verdict = iota
	isMessage
	isCall
)

func (v verdict) mode() mode {
	if v == isCall {
		return modeOneShot
	}
	return modeServe
}

// judge looks for the first JSON object in what was seen.
func judge(seen []byte, ended bool) verdict {
	rest := seen
	if len(bytes.TrimSpace(rest)) == 0 {
		if ended {
			return isMessage // nothing to do
		}
		return undecided
	}
	for len(bytes.TrimSpace(rest)) > 0 {
		var value json.RawMessage
		err := json.NewDecoder(bytes.NewReader(rest)).Decode(&value)
		switch {
		case err == nil && value[0] == '{':
			if hasMember(value, "jsonrpc") {
				return isMessage
			}
			return isCall
		case err == nil && value[0] == '[' && holdsMessage(value):
			return isMessage // a batch, to be refused as such
		case errors.Is(err, io.ErrUnexpectedEOF) && !ended:
			return undecided
		}
		_, rest, _ = bytes.Cut(bytes.TrimLeft(rest, " \t\r\n"), []byte("\n"))
	}
	if ended {
		return isCall // and a bad one
	}
	return undecided
}

func holdsMessage(array json.RawMessage) bool {
	var items []json.RawMessage
	if json.Unmarshal(array, &items) != nil || len(items) == 0 {
		return false
	}
	return hasMember(items[0], "jsonrpc")
}

// hasMember also answers of objects that have a member twice.
func hasMember(object json.RawMessage, name string) bool {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(object, &members) != nil {
		return false
	}
	_, ok := members[name]
	return ok
}

// chunks reads a stream in a goroutine, one chunk at a time and only when
// asked, so that waiting for it can be given up and the stream read on later.
type chunks struct {
	src     io.Reader
	ready   chan struct{}
	pending bool // a read is under way or has not been taken
	chunk   []byte
	rest    []byte // of a chunk taken by Read
	err     error
	ended   bool
}

func newChunks(src io.Reader) *chunks {
	return &chunks{src: src, ready: make(chan struct{}, 1)}
}

// request starts a read unless one is under way, and returns what becomes
// readable when it is done.
func (c *chunks) request() <-chan struct{} {
	if !c.pending {
		c.pending = true
		go func() {
			buf := make([]byte, 32<<10)
			n, err := c.src.Read(buf)
			c.chunk, c.err = buf[:n], err
			c.ready <- struct{}{}
		}()
	}
	return c.ready
}

// take returns what the read gave, after ready was received from.
func (c *chunks) take() []byte {
	c.pending = false
	c.ended = c.err != nil
	return c.chunk
}

// Read goes on with the stream directly, once a read that is under way has
// been taken.
func (c *chunks) Read(p []byte) (int, error) {
	if c.pending {
		<-c.ready
		c.rest = c.take()
	}
	if len(c.rest) > 0 {
		n := copy(p, c.rest)
		c.rest = c.rest[n:]
		return n, nil
	}
	if c.ended {
		return 0, c.err
	}
	return c.src.Read(p)
}
