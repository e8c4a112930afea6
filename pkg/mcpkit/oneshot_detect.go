package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"
)

// detectTimeout limits the time for which detectMode waits for more after input
// without a JSON object. If the pipe then closes, the input was one malformed
// call; if it stays open, its client should get an answer now.
const detectTimeout = 250 * time.Millisecond

// inputMode says how to treat standard input: as messages of MCP, or as plain calls.
type inputMode int

const (
	modeServe   inputMode = iota // JSON-RPC, or no input
	modeOneShot                  // objects without a member jsonrpc, or no JSON
)

// detectMode tells MCP from plain calls by the first JSON object of the input:
// an object with a member jsonrpc is a message, any other is a call. It skips
// lines before it that are not JSON. It returns a reader of the whole input. If
// patient is true, it waits without limit for the end of an incomplete object.
// If ctx ends, it returns modeServe.
func detectMode(ctx context.Context, stdin io.Reader, patient bool) (in io.Reader, m inputMode) {
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

// shouldClassify reports whether to classify the input seen again; classified
// is its length at the last classification. For long input that is only when it
// seems to end or has doubled, so that an object that arrives in many pieces
// does not take quadratic time.
func shouldClassify(seen []byte, classified int) bool {
	const short = 64 << 10
	if len(seen) <= short || len(seen) >= 2*classified {
		return true
	}
	end := bytes.TrimRight(seen, " \t\r\n")
	return len(end) > 0 && (end[len(end)-1] == '}' || end[len(end)-1] == ']')
}

// endsWithNewline reports whether the last byte is a line feed.
func endsWithNewline(seen []byte) bool { return len(seen) > 0 && seen[len(seen)-1] == '\n' }

// inputKind says how the beginning of the input was classified.
type inputKind int

const (
	inputUndecided inputKind = iota // more input is needed
	inputMessage                    // JSON-RPC, or no input
	inputCall                       // a call, perhaps malformed
)

// mode returns modeOneShot for a call, otherwise modeServe.
func (v inputKind) mode() inputMode {
	if v == inputCall {
		return modeOneShot
	}
	return modeServe
}

// classifyInput classifies the input so far by its first JSON object. ended
// says that no more will arrive; the result is then not inputUndecided.
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

// isBatch reports whether the first item of a JSON array has a member jsonrpc,
// as a batch of messages has.
func isBatch(array json.RawMessage) bool {
	var items []json.RawMessage
	if json.Unmarshal(array, &items) != nil || len(items) == 0 {
		return false
	}
	return hasMember(items[0], "jsonrpc")
}

// hasMember reports whether a JSON object has the member, once or repeatedly.
func hasMember(object json.RawMessage, name string) bool {
	members := map[string]json.RawMessage{}
	if json.Unmarshal(object, &members) != nil {
		return false
	}
	_, ok := members[name]
	return ok
}
