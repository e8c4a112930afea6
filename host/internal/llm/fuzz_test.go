package llm_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/schema"
)

// FuzzDecode holds that whatever a vendor's side sends is read without a
// panic, and that what was read can be written for the same vendor and read
// again; with CONVERT_CASES set, too, that it is the same if no loss is told.
func FuzzDecode(f *testing.F) {
	for i, d := range dialects() {
		g := newGen(uint64(i))
		request, response := g.request(), g.response()
		request.Tools = []llm.Tool{g.tool()}
		asked, _ := d.request(request)
		answered, _ := d.response(response)
		f.Add(uint8(i), []byte(asked.JSON()))
		f.Add(uint8(i), []byte(answered.JSON()))
	}
	f.Fuzz(func(t *testing.T, which uint8, data []byte) {
		all := dialects()
		d := all[int(which)%len(all)]
		if r, _, err := d.unask(data); err == nil {
			r.Tools = nil // TestDefinitionsComeBackAsReported has them
			made, losses := d.request(r)
			again, unread, err := d.unask(made.JSON())
			require.NoError(t, err)
			if os.Getenv("CONVERT_CASES") != "" && len(losses) == 0 {
				require.Empty(t, unread)
				r.Messages, again.Messages = llm.Normalize(r.Messages), llm.Normalize(again.Messages)
				require.True(t, schema.Equal(asTree(t, r), asTree(t, again)), "%s\n%s", asTree(t, r).JSON(), asTree(t, again).JSON())
			}
		}
		if r, _, err := d.answer(data); err == nil {
			made, _ := d.response(r)
			_, _, err := d.answer(made.JSON())
			require.NoError(t, err)
		}
		_, _, _ = d.untools(json.RawMessage(data), nil) //nolint:errcheck // it does not panic
	})
}
