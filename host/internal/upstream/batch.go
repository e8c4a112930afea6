package upstream

import (
	"bytes"
	"encoding/json"
)

// maxBatch is how many messages of one batch are taken.
const maxBatch = 10_000

// isBatch reports whether a line is several messages in one array, as version
// 2025-03-26 allows; other lines that begin with a bracket are noise.
func isBatch(line []byte) bool {
	line = bytes.TrimLeft(line, " \t\r\n")
	return len(line) > 0 && line[0] == '[' && bytes.HasPrefix(bytes.TrimLeft(line[1:], " \t\r\n"), []byte("{"))
}

// takeBatch takes the messages of a batch, one after the other, so that it needs
// no more room than the line has. What cannot be read ends it.
func (c *conn) takeBatch(line []byte) {
	in := json.NewDecoder(bytes.NewReader(line))
	in.Token() //nolint:errcheck // it is the bracket
	for range maxBatch {
		if !in.More() {
			return
		}
		at := in.InputOffset()
		var message json.RawMessage
		if in.Decode(&message) != nil {
			c.takeOne(bytes.TrimLeft(line[at:], ", \t\r\n"))
			return
		}
		c.takeOne(message)
	}
	c.strayed(line)
}
