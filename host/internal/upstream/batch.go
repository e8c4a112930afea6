package upstream

import (
	"bytes"
	"encoding/json"
)

// maxBatch bounds the messages of one batch.
const maxBatch = 10_000

// isBatch reports whether a line is an array of messages, which version 2025-03-26
// permits. Other lines that begin with a bracket are noise.
func isBatch(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) > 0 && line[0] == '[' && bytes.HasPrefix(bytes.TrimLeft(line[1:], " \t\r\n"), []byte("{"))
}

// handleBatch handles the messages of a batch one by one, without more memory than the
// line. It stops at a malformed message.
func (c *conn) handleBatch(line []byte, of json.RawMessage) {
	in := json.NewDecoder(bytes.NewReader(line))
	in.Token() //nolint:errcheck // the bracket
	for range maxBatch {
		if !in.More() {
			return
		}
		at := in.InputOffset()
		var message json.RawMessage
		if in.Decode(&message) != nil {
			c.handleMessage(bytes.TrimLeft(line[at:], ", \t\r\n"), of)
			return
		}
		c.handleMessage(message, of)
	}
	c.countStray(line)
}
