package gateway

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestContentsHaveTheURIThatWasAskedFor(t *testing.T) {
	const asked = "ui://toolroom/s/a"
	for _, c := range []struct{ result, want string }{
		{`{"contents":[{"uri":"ui://a","text":"ui://a","n":1.0}],"_meta":{"uri":"ui://a"}}`, `{"contents":[{"uri":"ui://toolroom/s/a","text":"ui://a","n":1.0}],"_meta":{"uri":"ui://a"}}`},
		{`{"contents":[{"uri":"ui:\/\/a"},{"uri":"ui://a/part"},{"uri":"ui://a"}]}`, `{"contents":[{"uri":"ui://toolroom/s/a"},{"uri":"ui://a/part"},{"uri":"ui://toolroom/s/a"}]}`},
		{`{"contents": [ {"uri":"ui://b"} ]}`, `{"contents": [ {"uri":"ui://b"} ]}`},
		{`{"contents":[1,{"uri":7},null]}`, `{"contents":[1,{"uri":7},null]}`},
		{`{"contents":{"uri":"ui://a"}}`, `{"contents":{"uri":"ui://a"}}`},
		{`{"resultType":"input_required"}`, `{"resultType":"input_required"}`},
		{`[]`, `[]`},
	} {
		require.Equal(t, c.want, string(withURI(json.RawMessage(c.result), "ui://a", asked)))
	}
}
