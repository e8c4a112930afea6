package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// detectTimeout is the time that input without a JSON object waits for more.
// If the pipe then closes, the input was one bad call; if it stays open, its
// client should get an answer now.
const detectTimeout = 250 * time.Millisecond

type mode int

const (
	modeServe   mode = iota // JSON-RPC, or no input
	modeOneShot             // objects without a jsonrpc member, or no JSON
)

// detect tells MCP from plain calls by the first JSON object of the input: an
// object with a member jsonrpc is a message, any other is a call. Lines before
// it that are not JSON are skipped. It returns a reader of the whole input. If
// patient is true, it waits without limit for the end of an incomplete object.
func detectMode(ctx context.Context, stdin io.Reader, patient bool) (io.Reader, mode) {
	src := newChunkReader(stdin)
	var seen []byte // without a byte order mark
	wholeInput := func() io.Reader { return io.MultiReader(bytes.NewReader(seen), src) }
	classified, bomDropped := 0, false
	for {
		if shouldClassify(seen, classified) || src.ended {
			classified = len(seen)
			if verdict := classifyInput(seen, src.ended); verdict != inputUndecided {
				return wholeInput(), verdict.mode()
			}
		}
		var limit <-chan time.Time
		if !patient && len(bytes.TrimSpace(seen)) > 0 {
			limit = time.After(detectTimeout)
		}
		select {
		case <-src.requestChunk():
			seen = append(seen, src.takeChunk()...)
			if rest, ok := bytes.CutPrefix(seen, []byte("\xef\xbb\xbf")); ok && !bomDropped {
				seen, bomDropped = rest, true
			}
		case <-limit:
			if endsWithNewline(seen) {
				return wholeInput(), modeServe
			}
			// A long line is still arriving: wait for its end.
			patient = true
		case <-ctx.Done():
			return wholeInput(), modeServe
		}
	}
}

// shouldClassify reports whether to classify seen again. For long input that is
// only when it seems to end or has doubled, so that an object that arrives in
// many pieces does not take quadratic time.
func shouldClassify(seen []byte, classified int) bool {
	const short = 64 << 10
	if len(seen) <= short || len(seen) >= 2*classified {
		return true
	}
	end := bytes.TrimRight(seen, " \t\r\n")
	return len(end) > 0 && (end[len(end)-1] == '}' || end[len(end)-1] == ']')
}

// endsWithNewline reports whether seen ends with a newline.
func endsWithNewline(seen []byte) bool { return len(seen) > 0 && seen[len(seen)-1] == '\n' }

type inputKind int

const (
	inputUndecided inputKind = iota
	inputMessage
	inputCall
)

func (v inputKind) mode() mode {
	if v == inputCall {
		return modeOneShot
	}
	return modeServe
}

// classifyInput decides by the first JSON object in seen, the input so far.
// ended reports that no more will arrive.
func classifyInput(seen []byte, ended bool) inputKind {
	rest := seen
	if len(bytes.TrimSpace(rest)) == 0 {
		if ended {
			return inputMessage // nothing to do
		}
		return inputUndecided
	}
	for len(bytes.TrimSpace(rest)) > 0 {
		var value json.RawMessage
		err := json.NewDecoder(bytes.NewReader(rest)).Decode(&value)
		switch {
		case err == nil && value[0] == '{':
			if hasMember(value, "jsonrpc") {
				return inputMessage
			}
			return inputCall
		case err == nil && value[0] == '[' && isBatch(value):
			return inputMessage // a batch, which the server refuses
		case errors.Is(err, io.ErrUnexpectedEOF) && !ended:
			return inputUndecided
		}
		_, rest, _ = bytes.Cut(bytes.TrimLeft(rest, " \t\r\n"), []byte("\n"))
	}
	if ended {
		return inputCall // a malformed one
	}
	return inputUndecided
}

func isBatch(array json.RawMessage) bool {
	var items []json.RawMessage
	if json.Unmarshal(array, &items) != nil || len(items) == 0 {
		return false
	}
	return hasMember(items[0], "jsonrpc")
}

// hasMember reports whether object has the member, even if it has it twice.
func hasMember(object json.RawMessage, name string) bool {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(object, &members) != nil {
		return false
	}
	_, ok := members[name]
	return ok
}
